"""`/v1/messages` with a memory, and histories that are larger than the model's window."""

from typing import Any

import anthropic
import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from chatcore.sessions import verification
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.anthropic_client import (
    HELLO,
    ask,
    ask_raw,
    build_body,
    claude,
    client,
    create_client,
    get_last_call,
    gpt,
    list_calls,
    speak_anthropic,
)
from tests.support.openai_client import WINDOW, count_tokens, limit_window
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["claude", "client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def trip(live: Live, user: User, model: AiModel, scripted: ScriptedModel) -> Any:
    """A client whose requests all name the same session."""
    speak_anthropic(scripted)
    yield create_client(live.url, user, default_headers={"X-Session-Id": "trip"})
    turn_runner.drain()
    for session in Session.objects.all():
        assert not verification.check_session(session.pk)


def load_messages() -> list[tuple[str, str]]:
    rows = Message.objects.filter(branch=None).order_by("seq")
    return list(rows.values_list("role", "content"))


def build_history(*texts: str) -> list[Any]:
    """Return a history of these texts, the user's first."""
    return [
        {"role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]


def test_a_known_history_is_recognized_and_only_what_is_new_is_stored(
    trip: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hi Alice.", reasoning="Greet."), Reply(text="Sure."))
    answer = ask(trip, system="Be brief.")
    said: Any = {"role": "assistant", "content": answer.content}
    ask(trip, [*HELLO, said, {"role": "user", "content": "Help me."}], system="Be brief.")
    assert load_messages() == [
        ("user", "Hello?"),
        ("assistant", "Hi Alice."),
        ("user", "Help me."),
        ("assistant", "Sure."),
    ]
    session = Session.objects.get()
    assert (session.external_id, session.system_prompt) == ("trip", "Be brief.")
    sent = get_last_call(scripted)["messages"]
    # The session has its thought, but nobody needs that of a turn that is over.
    assert [block["type"] for block in sent[1]["content"]] == ["text"]


def test_only_what_is_new_may_be_sent(trip: Anthropic, scripted: ScriptedModel) -> None:
    ask(trip)
    raw = ask_raw(trip, [{"role": "user", "content": "And now?"}])
    assert len(get_last_call(scripted)["messages"]) == 3
    assert raw.headers["x-session-id"] == str(Session.objects.get().pk)
    assert int(raw.headers["x-context-tokens"]) > 0


@pytest.mark.parametrize("metadata", [{"session_id": "trip"}, {"user_id": "session:trip"}])
def test_the_metadata_may_name_the_session(gpt: Anthropic, metadata: Any) -> None:
    ask(gpt, metadata=metadata)
    assert Session.objects.get().external_id == "trip"


def test_a_name_of_the_user_names_no_session(gpt: Anthropic) -> None:
    ask(gpt, metadata={"user_id": "alice"})
    assert not Session.objects.exists()


def test_another_history_is_an_edit_or_is_refused(trip: Anthropic, scripted: ScriptedModel) -> None:
    scripted.default = Reply(text="Noted.")
    ask(trip)
    other = build_history("Goodbye?", "Noted.", "Really?")
    with pytest.raises(anthropic.ConflictError):
        ask(trip, other, extra_headers={"X-Session-On-Divergence": "refuse"})
    ask(trip, other)
    assert [text for _, text in load_messages()] == ["Goodbye?", "Noted.", "Really?", "Noted."]


def test_a_call_for_a_title_does_not_touch_the_session(trip: Anthropic) -> None:
    ask(trip)
    ask(trip, system="Generate a short title for this conversation.")
    assert len(load_messages()) == 2


def test_marks_of_the_cache_become_the_sessions(trip: Anthropic, scripted: ScriptedModel) -> None:
    mark: Any = {"type": "ephemeral"}
    ask(trip, system=[{"type": "text", "text": "Be brief.", "cache_control": mark}])
    assert get_last_call(scripted)["cache_control"] == mark


def test_tokens_of_a_cache_are_counted_apart_in_a_session(
    trip: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Hi", usage=(100, 3, 60, 30)))
    usage = ask(trip).usage
    assert (usage.input_tokens, usage.cache_read_input_tokens) == (10, 60)
    assert usage.cache_creation_input_tokens == 30


def test_a_client_that_leaves_stops_the_answer_and_goes_on(
    trip: Anthropic, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="A long story.", chunks=["A ", "long ", "story."], chunk_delay=30))
    with trip.messages.stream(**build_body()) as stream:
        said = next(iter(stream.text_stream))
    ask(trip, build_history("Hello?", said, "Go on."))
    roles = [role for role, _ in load_messages()]
    assert roles == ["user", "assistant", "user", "assistant"]


@pytest.mark.parametrize("headers", [{}, {"X-Session-Id": "trip"}])
def test_a_history_past_the_window_is_answered_within_it(
    gpt: Anthropic, scripted: ScriptedModel, headers: dict[str, str]
) -> None:
    limit_window(scripted, lambda request: Reply(text="Noted."))
    texts = [text for n in range(30) for text in (f"{n} " + "lisbon " * 180, "Noted.")]
    history = build_history(*texts, "And now?")
    assert count_tokens({"messages": history}) > WINDOW
    raw = ask_raw(gpt, history, extra_headers=headers)
    assert raw.headers["x-context-compacted"] == "true"
    assert max(count_tokens(call.json) for call in list_calls(scripted)) <= WINDOW
