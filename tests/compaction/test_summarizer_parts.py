"""Summary calls for a long history: how it is cut to the window, and its parts are merged."""

from collections import deque

import pytest

from chatcore.models import Session
from chatcore.transfer import importer
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.summaries.calls import take_pieces
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_summary_calls,
    say,
    summarize_or_chat,
)
from tests.support.compaction_sessions import read_prompt as sent
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply

db = pytest.mark.django_db(transaction=True)


@db
def test_a_history_longer_than_the_window_is_summarized_in_parts_one_into_the_next(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=60)
    counted = iter(range(1, 100))
    scripted.default = lambda _: Reply(text=f"PART {next(counted)}. The trip to Lisbon is planned.")
    run = engine.compact_now(session.pk, trigger="manual")
    calls = list_summary_calls(scripted)
    assert run.status == "applied"
    assert len(calls) >= 5
    for number, request in enumerate(calls):
        assert len(str(request.json["messages"])) // 4 + 2048 < 8192
        assert (f"PART {number}." in request.json["messages"][-1]["content"]) is (number > 0)
    sent_text = "".join(request.json["messages"][-1]["content"] for request in calls)
    assert all(sent_text.count(f"{seq:04d} lisbon") == 1 for seq in range(1, 57))
    assert run.summary_after == f"PART {len(calls)}. The trip to Lisbon is planned."


@db
def test_each_part_is_retried_once(session: Session, scripted: ScriptedModel) -> None:
    fill_session(session, messages=30)
    scripted.script(Reply(text=SUMMARY), Reply(text=""), Reply(text=SUMMARY))
    scripted.default = Reply(text=SUMMARY)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    assert list_summary_calls(scripted)[1].json == list_summary_calls(scripted)[2].json


@db
def test_a_message_longer_than_the_window_is_summarized_in_pieces(
    session: Session, scripted: ScriptedModel
) -> None:
    session.messages.create(seq=1, role="user", content="z" * 90_000)
    session.messages.create(seq=2, role="user", content="x" * 8000)
    session.messages.create(seq=3, role="user", content="x" * 4000)
    scripted.default = Reply(text=SUMMARY)
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    assert len(list_summary_calls(scripted)) >= 4


@db
def test_a_call_refused_for_its_length_is_retried_shorter(
    session: Session, scripted: ScriptedModel
) -> None:
    """Chinese, for example, has one or two characters a token and not four."""
    fill_session(session, messages=14)
    scripted.script(make_overflow(tokens=9000, window=8192))
    scripted.default = Reply(text=SUMMARY)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied"
    assert len(sent(scripted, 1)) < len(sent(scripted, 0)) * 0.8


@db
def test_a_large_provider_count_makes_the_parts_smaller(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    session.messages.create(
        seq=13,
        role="assistant",
        content="Ja.",
        model=str(model),
        context_version=0,
        token_count_input=16_000,
        token_count_output=10,
    )
    scripted.default = Reply(text=SUMMARY)
    engine.compact_now(session.pk, trigger="manual")
    assert len(sent(scripted)) // 4 < (8192 - 2048) / 2.5


def test_taking_lines_loses_none() -> None:
    lines = ["a" * 10, "b" * 95, "c" * 250, "d"]
    rest, pieces = deque(lines), []
    while rest:
        pieces.append("\n\n".join(take_pieces(rest, 100)))
    assert all(len(piece) <= 102 for piece in pieces)
    assert "".join(pieces).replace("\n\n", "") == "".join(lines)


def test_a_short_message_before_a_huge_one_is_no_call_of_its_own() -> None:
    rest = deque(["[user]\nHi", "x" * 250])
    assert len("\n\n".join(take_pieces(rest, 100))) == 100


@db
def test_a_short_message_before_a_huge_one_is_summarized_with_it(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat()
    importer.import_messages(
        session,
        [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": "lisbon trip " * 9000},
        ],
    )
    turn = say(session)
    assert (turn.status, turn.notices) == ("completed", [])
    assert CompactionRun.objects.get().status == "applied"


@db
def test_a_merged_summary_may_outgrow_the_last_short_piece(
    session: Session, scripted: ScriptedModel
) -> None:
    """The last summary replaces everything before it, not only the last piece."""
    longer = (
        SUMMARY
        + " The flight leaves from Porto on the third of May, early in the morning, "
        + "and has a seat at the window."
    )
    importer.import_messages(
        session,
        [
            {"role": "user", "content": "lisbon trip " * 2100},
            {"role": "assistant", "content": "Good."},
        ],
    )
    fill_session(session, messages=6)
    scripted.script(Reply(text=SUMMARY), Reply(text=longer))
    run = engine.compact_now(session.pk, trigger="manual", up_to_seq=2)
    assert (run.status, run.summary_after, run.provider_calls) == ("applied", longer, 2)
