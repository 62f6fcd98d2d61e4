"""More answers at once than a process or a user may have are refused before anything is stored."""

import base64
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.utils import timezone
from openai import APIStatusError, OpenAI
from rest_framework.test import APIClient

from chatcore.base.runner import turn_runner
from chatcore.models import Attachment, Message, Session, Turn
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.client_tool_requests import WEATHER, asking
from tests.support.openai_client import HELLO, MODEL, create_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
ASYNC = {"Prefer": "respond-async"}


@pytest.fixture
def slow(scripted: ScriptedModel) -> Iterator[ScriptedModel]:
    """Answers begin and do not end until the test is over."""
    scripted.default = Reply(chunks=["One ", "two."], cut_after=1, hang=True)
    yield scripted
    turn_runner.stop()


@pytest.fixture
def bound(settings: Any) -> Callable[..., None]:
    def set_bounds(**bounds: int) -> None:
        settings.CHATCORE = {**settings.CHATCORE, **bounds}

    return set_bounds


def create_sessions(user: User, model: AiModel, count: int) -> list[Session]:
    return [Session.objects.create(owner=user, model=model) for _ in range(count)]


def send(api: APIClient, session: Session, headers: dict[str, str] = ASYNC, **body: Any) -> Any:
    address = f"/api/v1/sessions/{session.pk}/messages"
    return api.post(address, {"content": "Hi", **body}, headers=headers)


def test_a_full_process_is_503_and_nothing_is_stored(
    api: APIClient, user: User, model: AiModel, slow: ScriptedModel, bound: Callable[..., None]
) -> None:
    bound(TURNS_AT_ONCE=2)
    first, second, third = create_sessions(user, model, 3)
    assert [send(api, session).status_code for session in (first, second)] == [202, 202]
    picture = {"name": "note.txt", "data": base64.b64encode(b"A note.").decode()}
    refusal = send(api, third, attachments=[picture])
    assert (refusal.status_code, refusal.json()["type"]) == (503, "overloaded")
    assert (refusal["Retry-After"], "Nothing was stored" in refusal.json()["detail"]) == ("5", True)
    assert not Message.objects.filter(session=third).exists()
    assert not Attachment.objects.filter(session=third).exists()
    api.post(f"/api/v1/sessions/{first.pk}/cancel")
    turn_runner.wait(Turn.objects.get(session=first).pk)
    assert send(api, third).status_code == 202


def test_a_user_with_too_many_answers_is_429_and_others_are_served(
    api: APIClient,
    as_user: Callable[[User], APIClient],
    user: User,
    model: AiModel,
    slow: ScriptedModel,
    bound: Callable[..., None],
) -> None:
    bound(TURNS_AT_ONCE_PER_USER=1)
    first, second = create_sessions(user, model, 2)
    assert send(api, first).status_code == 202
    refusal = send(api, second)
    assert (refusal.status_code, refusal.json()["type"]) == (429, "too_many_turns")
    assert (refusal["Retry-After"], "Nothing was stored" in refusal.json()["detail"]) == ("5", True)
    bob = User.objects.create_user("bob")
    [other] = create_sessions(bob, model, 1)
    assert send(as_user(bob), other).status_code == 202


def test_answers_of_other_processes_count_for_the_user(
    api: APIClient, user: User, model: AiModel, bound: Callable[..., None]
) -> None:
    bound(TURNS_AT_ONCE=1, TURNS_AT_ONCE_PER_USER=1)
    first, second = create_sessions(user, model, 2)
    Turn.objects.create(session=first, lease_until=timezone.now() + timedelta(seconds=60))
    assert send(api, second).status_code == 429


def test_a_repeated_request_is_answered_as_before(
    api: APIClient, user: User, model: AiModel, slow: ScriptedModel, bound: Callable[..., None]
) -> None:
    bound(TURNS_AT_ONCE=1)
    [session] = create_sessions(user, model, 1)
    headers = {"Idempotency-Key": "one", **ASYNC}
    assert send(api, session, headers).status_code == 202
    again = send(api, session, headers)
    assert (again.status_code, again.json()["repeated"]) == (409, True)


def test_of_many_requests_at_once_no_more_than_the_bound_begin(
    api: APIClient, user: User, model: AiModel, slow: ScriptedModel, bound: Callable[..., None]
) -> None:
    bound(TURNS_AT_ONCE=3)
    sessions = create_sessions(user, model, 8)

    def begin(session: Session) -> int:
        try:
            return int(send(api, session).status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        statuses = sorted(pool.map(begin, sessions))
    assert set(statuses) == {202, 503}
    assert statuses.count(202) == Turn.objects.count() <= 3


def test_results_of_tools_that_cannot_go_on_now_can_be_sent_again(
    api: APIClient,
    user: User,
    model: AiModel,
    scripted: ScriptedModel,
    bound: Callable[..., None],
) -> None:
    waiting, other = create_sessions(user, model, 2)
    scripted.script(Reply(tool_calls=(asking("Rome", id="a"),)))
    scripted.default = Reply(chunks=["One ", "two."], cut_after=1, hang=True)
    assert send(api, waiting, {}, tools=[WEATHER]).json()["status"] == "waiting"
    bound(TURNS_AT_ONCE=1)
    assert send(api, other).status_code == 202
    address = f"/api/v1/sessions/{waiting.pk}/tool_results"
    results = {"results": [{"tool_call_id": "a", "content": "Sunny."}]}
    assert api.post(address, results, headers=ASYNC).status_code == 503
    assert not Message.objects.filter(role=Message.Role.TOOL).exists()
    bound(TURNS_AT_ONCE=2)
    assert api.post(address, results, headers=ASYNC).status_code == 202


def ask(client: OpenAI, **options: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=HELLO, **options)


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "a new chat"}])
def test_an_openai_client_is_refused_in_its_own_form(
    live: Live,
    user: User,
    model: AiModel,
    slow: ScriptedModel,
    bound: Callable[..., None],
    headers: dict[str, str],
) -> None:
    """An answer without a session counts too, until its stream is closed."""
    bound(TURNS_AT_ONCE=1)
    client = create_client(live.url, user)
    stream = ask(client, stream=True)
    next(iter(stream))
    with pytest.raises(APIStatusError) as refusal:
        ask(client, extra_headers=headers)
    assert (refusal.value.status_code, refusal.value.code) == (503, "overloaded")
    assert refusal.value.response.headers["Retry-After"] == "5"
    assert not Session.objects.exists()
    stream.close()
    slow.default = Reply(text="Yes.")

    def is_answered() -> bool:
        try:
            return bool(ask(client, extra_headers=headers).choices)
        except APIStatusError:
            return False

    wait_until(is_answered, seconds=60, what="the place of the closed stream")


def test_the_bounds_are_settings_with_defaults(settings: Any) -> None:
    assert settings.CHATCORE["TURNS_AT_ONCE"] == 200
    assert settings.CHATCORE["TURNS_AT_ONCE_PER_USER"] == 20
