"""What strangers learn from error pages: nothing, and in debug mode no password."""

from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.conf import settings
from django.http import HttpRequest
from django.test import override_settings
from django.views.debug import ExceptionReporter

from tests.support.web_process import run_web_server

PASSWORD = "canary-8713"


@pytest.mark.slow
@pytest.mark.program
def test_a_server_without_any_variable_shows_strangers_nothing_of_itself(tmp_path: Path) -> None:
    with run_web_server(tmp_path) as url:
        unknown_page = httpx2.get(f"{url}/no/such/page", timeout=30)
        bad_host = httpx2.get(f"{url}/login/", headers={"Host": "evil.example"}, timeout=30)
    assert (unknown_page.status_code, bad_host.status_code) == (404, 400)
    assert "There is no such page" in unknown_page.text
    assert "CHATCORE_ALLOWED_HOSTS" in bad_host.text
    for page in (unknown_page, bad_host):
        for word in ("DEBUG", "Traceback", "urlpatterns", "chatcore.urls", str(tmp_path), "/no/"):
            assert word not in page.text


def build_report(**variables: Any) -> str:
    """Return the technical page of an error in a function with these variables."""

    def fail(**variables: Any) -> None:
        raise RuntimeError("something else")

    request = HttpRequest()
    request.META = {"SERVER_NAME": "localhost", "SERVER_PORT": "80"}
    with pytest.raises(RuntimeError) as caught:
        fail(**variables)
    reporter = ExceptionReporter(request, caught.type, caught.value, caught.tb)
    return reporter.get_traceback_html()


@pytest.mark.parametrize(
    "changes",
    [
        {"REDIS_URL": f"redis://:{PASSWORD}@cache.internal:6379/0"},
        {
            "CACHES": {
                "default": {
                    "BACKEND": "django.core.cache.backends.redis.RedisCache",
                    "LOCATION": [f"redis://me:{PASSWORD}@cache.internal:6379/0"],
                }
            }
        },
        {"SOME_ADDRESS": f"postgres://me:{PASSWORD}@db.internal/chatcore"},
    ],
)
def test_no_setting_on_a_technical_page_has_a_password(changes: dict[str, Any]) -> None:
    with override_settings(DEBUG=True, **changes):
        report = build_report()
    assert "something else" in report
    assert PASSWORD not in report


@pytest.mark.parametrize(
    "variables",
    [
        {"server": f"redis://:{PASSWORD}@cache.internal:6379/0"},
        {"servers": [f"rediss://me:{PASSWORD}@cache.internal"]},
        {"api_key": PASSWORD},
    ],
)
def test_no_variable_on_a_technical_page_has_a_password(variables: dict[str, Any]) -> None:
    with override_settings(DEBUG=True):
        assert PASSWORD not in build_report(**variables)


def test_no_variable_on_a_technical_page_has_a_secret_of_the_settings() -> None:
    secrets = [settings.SECRET_KEY, *settings.CHATCORE["KEY_ENCRYPTION_KEYS"]]
    with override_settings(DEBUG=True):
        report = build_report(options={"first": secrets[0], "others": secrets[1:]})
    assert [secret for secret in secrets if secret in report] == []
