"""NeuroLink's non-destructive history (seed 000): messages are hidden, never deleted.

Its tags (`condenseParent`, `truncationParent`) are a revision here, which hides the messages before
its boundary, except pinned ones. Rewinding the revision shows exactly these messages again.
"""

import pytest

from chatcore.context import builder, revisions
from chatcore.models import Session
from chatcore.providers.base import Request
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    read_message_texts,
    read_stored_messages,
    say,
    summarize_or_chat,
)
from tests.support.preset_sessions import PROTOCOLS, set_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.strict_servers import find_refusals

pytestmark = pytest.mark.django_db(transaction=True)

MARKER = "[Earlier conversation history was truncated to fit within context limits]"


def list_sent_seqs(session: Session) -> list[int]:
    """Return the seqs of the messages in the next request."""
    return [message.seq for message in build_request(session).messages if message.seq is not None]


def build_request(session: Session) -> Request:
    request = builder.build_request(session)
    assert find_refusals(request) == []
    return request


@pytest.fixture
def full(full: Session, scripted: ScriptedModel) -> Session:
    return set_policy(full, "neurolink", scripted, "openai")


def truncate_history(session: Session, scripted: ScriptedModel) -> CompactionRun:
    """Run a compaction that slides the window, because no summary can be written."""
    scripted.default = summarize_or_chat(summary=Reply(text=" "))
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    assert run.stages_used == ["slide_window"]
    return run


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_effective_history_is_what_the_wire_carries(
    protocol: str, full: Session, scripted: ScriptedModel
) -> None:
    set_policy(full, "neurolink", scripted, protocol)
    assert engine.compact_now(full.pk, trigger="manual").status == "applied"
    sent_seqs = list_sent_seqs(full)
    say(full, "And the flight?")
    texts = read_message_texts(list_chat_calls(scripted)[-1])
    contents = dict(full.messages.values_list("seq", "content"))
    for seq in range(1, 15):
        assert any(contents[seq] in text for text in texts) == (seq in sent_seqs)


def test_undoing_a_summary_shows_exactly_the_messages_that_it_condensed(
    full: Session, scripted: ScriptedModel
) -> None:
    before, stored_messages = list_sent_seqs(full), read_stored_messages(full)
    run = engine.compact_now(full.pk, trigger="manual")
    hidden_seqs = set(before) - set(list_sent_seqs(full))
    assert run.stages_used == ["summarize"]
    assert len(hidden_seqs) == run.messages_compacted > 0
    assert SUMMARY in build_request(full).preface
    engine.rewind_run(run)
    assert list_sent_seqs(full) == before
    assert build_request(full).preface == ""
    assert read_stored_messages(full) == stored_messages


def test_undoing_a_truncation_shows_exactly_the_messages_that_it_hid(
    full: Session, scripted: ScriptedModel
) -> None:
    before, stored_messages = list_sent_seqs(full), read_stored_messages(full)
    run = truncate_history(full, scripted)
    hidden_seqs = set(before) - set(list_sent_seqs(full))
    assert hidden_seqs
    assert not hidden_seqs & {1, 2}, "the first pair stays"
    assert len(hidden_seqs) % 2 == 0
    assert build_request(full).preface == MARKER
    engine.rewind_run(run)
    assert list_sent_seqs(full) == before
    assert build_request(full).preface == ""
    assert read_stored_messages(full) == stored_messages


def test_one_hiding_is_undone_without_the_one_before_it(
    full: Session, scripted: ScriptedModel
) -> None:
    engine.compact_now(full.pk, trigger="manual")
    once = list_sent_seqs(full)
    fill_session(full, messages=14)
    both = list_sent_seqs(full)
    run = truncate_history(full, scripted)
    assert set(list_sent_seqs(full)) < set(both)
    assert SUMMARY in build_request(full).preface
    assert MARKER in build_request(full).preface
    engine.rewind_run(run)
    assert list_sent_seqs(full) == both
    assert both[: len(once)] == once
    assert MARKER not in build_request(full).preface


def test_nothing_is_destroyed_however_often_the_history_is_cut(
    full: Session, scripted: ScriptedModel
) -> None:
    for _ in range(3):
        stored_messages = read_stored_messages(full)
        engine.compact_now(full.pk, trigger="manual")
        assert read_stored_messages(full) == stored_messages
        assert full.messages.count() == len(stored_messages)
        fill_session(full, messages=10)
    revisions.reset_context(full.pk)
    assert list_sent_seqs(full) == list(range(1, full.messages.count() + 1))
