"""A user, and a process, may have so many event streams open; a closed one makes room."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken

from chatcore.models import Session
from tests.conftest import Live
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def bound(settings: Any) -> Callable[..., None]:
    def set_bounds(**bounds: int) -> None:
        settings.CHATCORE = {**settings.CHATCORE, **bounds}

    return set_bounds


@pytest.fixture
def client(live: Live, user: User) -> Iterator[httpx2.Client]:
    headers = {"Authorization": f"Bearer {AuthToken.objects.create(user)[1]}"}
    with httpx2.Client(base_url=live.url, headers=headers, timeout=30) as client:
        yield client


def open_stream(client: httpx2.Client, session: Session, streams: ExitStack) -> httpx2.Response:
    address = f"/api/v1/sessions/{session.pk}/events"
    return streams.enter_context(client.stream("GET", address))


@pytest.mark.parametrize(
    ("bounds", "status", "type"),
    [
        ({"STREAMS_AT_ONCE_PER_USER": 2}, 429, "too_many_streams"),
        ({"STREAMS_AT_ONCE": 2}, 503, "overloaded"),
    ],
)
def test_one_stream_more_is_refused_until_another_is_closed(
    client: httpx2.Client,
    session: Session,
    bound: Callable[..., None],
    bounds: dict[str, int],
    status: int,
    type: str,
) -> None:
    bound(**bounds)
    with ExitStack() as others, ExitStack() as first:
        assert open_stream(client, session, first).status_code == 200
        assert open_stream(client, session, others).status_code == 200
        refusal = open_stream(client, session, others)
        problem = (refusal.read(), refusal.json())[1]
        assert (refusal.status_code, problem["type"]) == (status, type)
        assert refusal.headers["Retry-After"] == "30"
        first.close()
        wait_until(
            lambda: open_stream(client, session, others).status_code == 200,
            seconds=20,
            what="the place of the closed stream",
        )


def test_a_stream_of_another_server_gives_its_place_back_too(
    user: User, session: Session, bound: Callable[..., None]
) -> None:
    """Without the extension of our ASGI application, Django sends and closes the stream."""
    bound(STREAMS_AT_ONCE_PER_USER=1)
    browser = Client()
    browser.force_login(user)
    for _ in range(3):
        answer = browser.get(f"/api/v1/sessions/{session.pk}/events")
        assert answer.status_code == 200
        answer.close()
