"""A web process dies in the middle of a response: what is read then is the truth."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from openai import OpenAI
from rest_framework.test import APIClient

from chatcore.contrib.compat.models import StoredResponse
from chatcore.events import log as event_log
from chatcore.events.types import DeltaPayload, EventType
from chatcore.models import Message, Session, Turn
from chatcore.turns.lifecycle import recover_dead_turns
from chatcore.turns.messages import append_message, build_created_event
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.open_responses import check_response, check_stream, parse_events
from tests.support.openai_client import create_client
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def orphan(api: APIClient, session: Session, scripted: ScriptedModel) -> StoredResponse:
    """A response in the background whose process has died after some words."""
    body = {"model": "test-model", "input": "Count.", "background": True}
    response_id = api.post("/v1/responses", body, format="json").json()["id"]
    record = StoredResponse.objects.get()
    assert str(record) == response_id
    dead_turn = Turn.objects.create(
        session=session, lease_until=timezone.now() - timedelta(minutes=5)
    )
    record.session, record.turn = session, dead_turn
    record.after_event_seq = session.last_event_seq
    record.input_seq = 0
    record.save()
    answer = append_message(
        session.pk, dead_turn, build_created_event, role="assistant", status="streaming"
    )
    for offset, text in ((0, "One, "), (5, "two")):
        payload = DeltaPayload(message=answer.pk, offset=offset, text=text)
        event_log.append_events(session.pk, (EventType.MESSAGE_DELTA, payload))
    return record


def test_the_response_failed_with_the_words_it_had(
    orphan: StoredResponse, api: APIClient, live: Live, user: User, model: AiModel
) -> None:
    assert api.get(f"/v1/responses/{orphan}").json()["status"] == "in_progress"
    assert recover_dead_turns() == 1
    resource = api.get(f"/v1/responses/{orphan}").json()
    check_response(resource)
    assert (resource["status"], resource["error"]["code"]) == ("failed", "interrupted")
    assert resource["output"][0]["content"][0]["text"] == "One, two"
    assert Message.objects.filter(status="interrupted").exists()
    client = create_client(live.url, user)
    events = follow(client, f"/responses/{orphan}?stream=true")
    check_stream(events)
    assert [event["type"] for event in events[-2:]] == ["error", "response.failed"]
    assert follow(client, f"/responses/{orphan}?stream=true&starting_after=3") == events[4:]


def follow(client: OpenAI, path: str) -> list[dict[str, Any]]:
    return parse_events(client.get(path, cast_to=str))
