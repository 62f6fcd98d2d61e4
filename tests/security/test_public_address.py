"""One setting knows the public address, and all that depends on it follows."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatcore.management.commands.serve import Command
from chatcore.serving import programs
from tests.support.prepared_database import put_database
from tests.support.web_process import build_environment, run_web_server

pytestmark = pytest.mark.program

PUBLIC_URL = "https://chat.example.com"
BY_PROXY = {"Host": "chat.example.com", "X-Forwarded-Proto": "https"}


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with tables: pages that offer to sign in ask them for identity providers."""
    folder = tmp_path_factory.mktemp("data")
    put_database(folder)
    return folder


@pytest.fixture(scope="module")
def public_server(data_folder: Path) -> Iterator[str]:
    with run_web_server(data_folder, CHATCORE_PUBLIC_URL=PUBLIC_URL) as url:
        yield url


@pytest.fixture(scope="module")
def named_server(data_folder: Path) -> Iterator[str]:
    """A server with the names of its hosts, as the README advises."""
    variables = {
        "CHATCORE_ALLOWED_HOSTS": "chat.example.com",
        "CHATCORE_TRUSTED_PROXIES": "192.0.2.1",
    }
    with run_web_server(data_folder, **variables) as url:
        yield url


@pytest.mark.slow
def test_the_check_for_deployments_has_nothing_to_say(tmp_path: Path) -> None:
    process = subprocess.run(
        [sys.executable, "-m", "chatcore", "check", "--deploy", "--fail-level", "WARNING"],
        env=build_environment(tmp_path, CHATCORE_PUBLIC_URL=PUBLIC_URL),
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr


def test_a_page_over_plain_http_sends_the_browser_to_the_public_address(
    public_server: str,
) -> None:
    for host in ("chat.example.com", "127.0.0.1"):
        answer = httpx2.get(f"{public_server}/login/", headers={"Host": host}, timeout=30)
        assert (answer.status_code, answer.headers["Location"]) == (301, f"{PUBLIC_URL}/login/")


def test_a_page_by_the_proxy_has_cookies_for_https_only(public_server: str) -> None:
    answer = httpx2.get(f"{public_server}/login/", headers=BY_PROXY, timeout=30)
    assert answer.status_code == 200
    assert "Secure" in answer.headers["Set-Cookie"]
    assert answer.headers["Strict-Transport-Security"] == "max-age=2592000"


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/readyz/"])
@pytest.mark.parametrize("host", ["127.0.0.1", "192.0.2.7:8000", "evil.example"])
def test_a_probe_may_use_any_address(
    public_server: str, named_server: str, path: str, host: str
) -> None:
    for url in (public_server, named_server):
        answer = httpx2.get(f"{url}{path}", headers={"Host": host}, timeout=30)
        assert "status" in answer.json()


def test_a_proxy_that_is_not_named_is_not_believed_about_addresses(named_server: str) -> None:
    with httpx2.Client(base_url=named_server, timeout=30) as client:
        statuses = []
        for number in range(11):
            client.get("/login/")
            form = {"username": f"nobody {number}", "password": "wrong"}
            fields = form | {"csrfmiddlewaretoken": client.cookies["csrftoken"]}
            headers = {"X-Forwarded-For": f"198.51.100.{number}"}
            statuses.append(client.post("/login/", data=fields, headers=headers).status_code)
    assert statuses[-1] == 429


def test_caddys_file_keeps_each_form_of_a_probe_inside(settings: Any) -> None:
    file = settings.BASE_DIR / "deploy/proxy/Caddyfile"
    [line] = re.findall(r"@inside path (.*)", file.read_text())
    for path in ("/metrics", "/livez", "/readyz"):
        assert {f"{path}/", path} <= set(line.split())
    assert Client().get("/readyz//").status_code == 404


def test_a_proxy_that_is_not_named_is_not_believed(named_server: str) -> None:
    answer = httpx2.get(f"{named_server}/api/v1/sessions", headers=BY_PROXY, timeout=30)
    assert answer.status_code == 401
    answer = httpx2.get(f"{named_server}/login/", headers=BY_PROXY, timeout=30)
    assert answer.status_code == 200
    assert "Strict-Transport-Security" not in answer.headers


def test_this_machine_may_ask_whatever_hosts_are_named(named_server: str) -> None:
    for host, status in (
        ("127.0.0.1", 200),
        ("localhost:8000", 200),
        ("chat.example.com", 200),
        ("evil.example", 400),
    ):
        answer = httpx2.get(f"{named_server}/login/", headers={"Host": host}, timeout=30)
        assert (host, answer.status_code) == (host, status)


@pytest.mark.django_db
def test_the_printed_link_has_an_address_that_is_answered(user: User, settings: Any) -> None:
    assert "http://192.0.2.5:8000/login/once/" in Command()._build_welcome("192.0.2.5", 8000)
    (web_server,) = programs.build_web_programs("192.0.2.5", 1, drain_seconds=0, static_folder="")
    assert "192.0.2.5" in web_server.environment["CHATCORE_ALLOWED_HOSTS"].split(",")
    settings.PUBLIC_URL = PUBLIC_URL
    assert f" {PUBLIC_URL}/login/once/" in Command()._build_welcome("0.0.0.0", 8000)
