"""Log lines: ids of request, user, session and turn, no contents, and no link that signs in."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.serving.logs import build_line_formatter
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply


class Lines:
    """What was logged in one form since the beginning of a test."""

    def __init__(self, form: str) -> None:
        self.stream = io.StringIO()
        self.handler = logging.StreamHandler(self.stream)
        self.handler.setFormatter(build_line_formatter(form))

    def read(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]


@pytest.fixture(params=["json", "logfmt"])
def form(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def lines(form: str) -> Iterator[Lines]:
    lines = Lines(form)
    root = logging.getLogger()
    root.addHandler(lines.handler)
    yield lines
    root.removeHandler(lines.handler)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", ["json"])
def test_a_failure_of_a_provider_is_no_error_of_the_product(
    api: APIClient, session: Session, scripted: ScriptedModel, lines: Lines
) -> None:
    """Each line of the level ERROR is a report to Sentry."""
    scripted.script(*[Reply(status=500, text="not today")] * 3)
    response = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hello"})
    assert response.status_code in (502, 503)
    levels = {line["event"]: line["level"] for line in lines.read()}
    assert any(f"/api/v1/sessions/{session.pk}/messages" in event for event in levels)
    assert set(levels.values()) == {"warning"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("form", ["json"])
def test_a_failed_turn_is_a_line_with_ids_and_without_contents(
    api: APIClient, session: Session, scripted: ScriptedModel, lines: Lines
) -> None:
    scripted.script(Reply(status=401, text="No such key"))
    path = f"/api/v1/sessions/{session.pk}/messages"
    headers = {"X-Request-Id": "of-the-test"}
    api.post(path, {"content": "A secret heron."}, headers=headers)
    (line,) = [line for line in lines.read() if "failed: provider_auth" in line["event"]]
    assert line["level"] == "warning"
    assert (line["request"], line["session"]) == ("of-the-test", str(session.pk))
    assert line["turn"] in line["event"]
    assert "heron" not in lines.stream.getvalue()


@pytest.mark.django_db
@pytest.mark.parametrize("form", ["json"])
def test_who_sent_a_token_is_named_by_id(
    client: Client, user: Any, session: Session, lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    from knox.models import AuthToken

    token = AuthToken.objects.create(user)[1]
    client.raise_request_exception = False
    path = f"/api/v1/sessions/{session.pk}"
    monkeypatch.setattr("chatcore.api.sessions.get_owned_session", None)  # the view breaks
    client.get(path, headers={"Authorization": f"Bearer {token}"})
    broken = [line for line in lines.read() if line["level"] == "error"]
    assert broken[0]["user"] == str(user.pk)
    assert broken[0]["session"] == str(session.pk)
    assert token not in lines.stream.getvalue()


@pytest.mark.parametrize("word", ["GET /login/once/abc.def:ghi/ failed", "/login/once/abc.def:ghi"])
def test_no_line_has_a_link_that_signs_in(lines: Lines, word: str) -> None:
    logging.getLogger("tests").warning("it was %s", word)
    assert "/login/once/" in lines.stream.getvalue()
    assert "abc.def" not in lines.stream.getvalue()
