"""While a model reads a long request, those who follow the session are told how far it is."""

import pytest

from chatcore.events.types import EventType
from chatcore.models import Session, SessionEvent, Turn
from chatcore.turns import control, recorder
from models_registry.models import AiModel
from tests.support.browsing import PausedChunks
from tests.support.provider_calls import build_refusal
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def reader(model: AiModel) -> AiModel:
    """A model whose server tells how far it has read."""
    model.provider.options = {"tells_reading": True}
    model.provider.save()
    return model


def list_told(session: Session) -> list[tuple[int, int]]:
    events = SessionEvent.objects.filter(session=session, name=EventType.TURN_READING)
    return [(data["read"], data["total"]) for data in events.values_list("data", flat=True)]


def answer(session: Session) -> Turn:
    return control.wait_for_turn(control.start_turn(session, content="Read all this.").pk, 10)


def test_what_is_read_is_told_without_what_the_cache_holds(
    reader: AiModel, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "TELL_SECONDS", 0)
    words = PausedChunks("Done.")
    scripted.script(Reply(reading=[(100, 250, 400)], chunks=words))
    turn = control.start_turn(session, content="Read all this.")
    try:
        wait_until(lambda: bool(list_told(session)))
    finally:
        words.resume.set()
    control.wait_for_turn(turn.pk, 10)
    assert list_told(session) == [(150, 300)]
    assert session.messages.get(role="assistant").content == "Done."


def test_a_short_reading_stores_nothing(
    reader: AiModel, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Done.", reading=[(0, read, 400) for read in range(0, 401, 10)]))
    assert answer(session).status == Turn.Status.COMPLETED
    assert list_told(session) == []


@pytest.mark.parametrize("progress", [(0, 0, 0), (300, 100, 400), (0, 500, 400), (0, -1, 400)])
def test_numbers_that_cannot_be_are_not_told(
    reader: AiModel,
    session: Session,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
    progress: tuple[int, int, int],
) -> None:
    monkeypatch.setattr(recorder, "TELL_SECONDS", 0)
    scripted.script(Reply(text="Done.", reading=[progress]))
    assert answer(session).status == Turn.Status.COMPLETED
    assert list_told(session) == []


def test_a_server_is_asked_only_where_it_is_known_to_tell(
    session: Session, scripted: ScriptedModel
) -> None:
    answer(session)
    assert "return_progress" not in scripted.requests[-1].json


def test_a_server_that_refuses_the_field_is_asked_no_more(
    reader: AiModel, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(build_refusal(400, "Unsupported parameter: 'return_progress'."))
    assert answer(session).status == Turn.Status.COMPLETED
    answer(session)
    asked = ["return_progress" in request.json for request in scripted.requests]
    assert asked == [True, False, False]
