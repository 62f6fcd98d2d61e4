"""A client that leaves before the first word ends the call of its provider, which costs money."""

import json
import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.signals import request_finished, request_started

from chatcore.turns import capacity
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_key
from tests.support.raw_http import RawConnection
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.django_db(transaction=True)
SAYS = [{"role": "user", "content": "Think for long."}]
# Nothing but its client ends it.
ENDLESS = Reply(chunks=["word "] * 3000, delay=0.3, chunk_delay=0.2)
BODIES: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": SAYS},
    "/v1/messages": {"messages": SAYS, "max_tokens": 100},
    "/v1/responses": {"input": SAYS, "store": False},
    "/v1/completions": {"prompt": "Think for long."},
}


def send_request(client: RawConnection, user: User, path: str, *, stream: bool) -> None:
    body = json.dumps({"model": MODEL, "stream": stream, **BODIES[path]}).encode()
    client.send_head(
        "POST",
        path,
        Authorization=f"Bearer {create_key(user)}",
        Content_Type="application/json",
        Content_Length=len(body),
    )
    client.send(body)


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [True, False])
def test_the_call_of_the_provider_ends_with_its_client(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel, path: str, stream: bool
) -> None:
    scripted.default = ENDLESS
    with RawConnection(live.url) as client:
        send_request(client, user, path, stream=stream)
        wait_until(lambda: bool(scripted.requests), what="the provider to be asked")
    wait_until(scripted.requests[0].client_left.is_set, what="the provider to be left")
    wait_until(lambda: capacity.count_answers() == 0, what="the place to be given back")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("path", BODIES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_left_before_the_view_began_costs_nothing_either(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel, path: str, stream: bool
) -> None:
    """Django looks for the client when the view has begun, and cancels what it waits for then."""
    scripted.default = ENDLESS
    has_begun, has_left, has_finished = threading.Event(), threading.Event(), threading.Event()

    def wait_for_leaving(**_: object) -> None:
        has_begun.set()
        has_left.wait(PATIENCE_SECONDS)

    def note_end(**_: object) -> None:
        has_finished.set()

    request_started.connect(wait_for_leaving)
    request_finished.connect(note_end)
    try:
        with RawConnection(live.url) as client:
            send_request(client, user, path, stream=stream)
            wait_until(has_begun.is_set, what="the request to begin")
        has_left.set()
        wait_until(has_finished.is_set, what="the request to end")
    finally:
        request_started.disconnect(wait_for_leaving)
        request_finished.disconnect(note_end)
    wait_until(
        lambda: all(request.client_left.is_set() for request in scripted.requests),
        what="the provider to be left",
    )
    wait_until(lambda: capacity.count_answers() == 0, what="the place to be given back")
