"""The ledger of a session: written down when things are said, and sent beside the summary."""

import json
import threading

import pytest
from django.db import connection
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.memory.ledger import recorder, store
from compaction.memory.models import LedgerLine
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from compaction.sessions import session_context
from tests.support.compaction_sessions import (
    fill_session,
    is_summary_call,
    list_chat_calls,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.ledger_sessions import RULE, compact, list_texts, read_next_request, session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

__all__ = ["session"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("policy", ["ledger", "chatcore"])
def test_a_rule_said_once_is_still_sent_after_three_compactions(
    session: Session, scripted: ScriptedModel, policy: str
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    say(session, f"Hello! {RULE} What do you think of Lisbon?")
    for _ in range(3):
        fill_session(session, messages=14)
        compact(session)
        assert RULE in read_next_request(session, scripted)
    assert list_texts(session, kind="rule") == [RULE]


def test_what_takes_nothing_back_is_no_line(session: Session) -> None:
    for text in ("I got stuck in traffic again.", "No, thanks.", "It rains now.", RULE):
        say(session, text)
    assert list_texts(session) == [RULE]
    say(session, "No, thanks.")
    say(session, "Sundays are fine again.")
    assert list_texts(session) == [RULE, "Sundays are fine again."]


def test_a_summary_that_turns_the_rule_round_does_no_harm(
    session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = summarize_or_chat(Reply(text="Always book flights on Sundays."))
    say(session, f"Hello! {RULE} What do you think of Lisbon?")
    fill_session(session)
    compact(session)
    assert RULE in read_next_request(session, scripted)


def test_nothing_is_sent_before_the_first_compaction(
    session: Session, scripted: ScriptedModel
) -> None:
    say(session, f"Hello! {RULE}")
    request = read_next_request(session, scripted)
    assert request.count(RULE) == 1
    assert "<conversation_summary>" not in request


def test_a_newer_value_supersedes_its_twin(session: Session, scripted: ScriptedModel) -> None:
    say(session, "The staging port is 8080.")
    say(session, "The staging port is 9090 now.")
    old, new = LedgerLine.objects.filter(session=session).order_by("seq")
    assert (old.status, old.superseded_by, new.status) == ("superseded", new.seq, "current")
    fill_session(session)
    compact(session)
    assert "The staging port is 9090 now." in read_next_request(session, scripted)


def test_without_a_share_nothing_is_written_down(session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    say(session, RULE)
    fill_session(session)
    compact(session)
    assert not store.has_lines(session.pk)
    assert not SessionState.objects.filter(ledger_seq__gt=0).exists()


def test_an_old_session_is_caught_up_by_the_first_pass(
    session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="oneclaw")
    say(session, f"Hello! {RULE}")
    fill_session(session, messages=2 * recorder.BATCH_MESSAGES + 10, tokens=20)
    Session.objects.filter(pk=session.pk).update(policy="ledger")
    compact(session)
    assert list_texts(session, kind="rule") == [RULE]
    assert RULE in read_next_request(session, scripted)


def test_the_check_after_a_response_reads_a_few_messages_of_an_import(session: Session) -> None:
    fill_session(session, messages=200, tokens=10)
    context = session_context.load_session_context(session.pk)
    assert context
    recorder.record_new_lines(context)
    ledger_seq = SessionState.objects.get(pk=session.pk).ledger_seq
    assert ledger_seq == 2 * recorder.CHECK_MESSAGES - 1  # every second message is the user's


def test_what_the_model_says_is_not_written_down(session: Session, scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="Never drink the water. The port is 7070."))
    say(session, "Hello there, how are you?")
    assert not store.has_lines(session.pk)


def test_reading_twice_is_reading_once(session: Session) -> None:
    say(session, f"{RULE} The staging port is 8080. My budget is 2,400 EUR.")
    rows = list(LedgerLine.objects.values_list("seq", "kind", "text", "status"))
    assert rows
    SessionState.objects.filter(pk=session.pk).update(ledger_seq=0)
    context = session_context.load_session_context(session.pk)
    assert context
    recorder.record_all_lines(context)
    assert list(LedgerLine.objects.values_list("seq", "kind", "text", "status")) == rows


def test_two_at_once_do_no_harm(session: Session) -> None:
    fill_session(session, messages=2, tokens=10)
    Message.objects.filter(session=session, seq=1).update(content=RULE)
    context = session_context.load_session_context(session.pk)
    assert context

    def record() -> None:
        recorder.record_all_lines(context)
        connection.close()

    workers = [threading.Thread(target=record) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert list_texts(session, kind="rule") == [RULE]


def test_the_pass_ends_under_its_threshold_with_a_full_ledger(
    session: Session, scripted: ScriptedModel
) -> None:
    rules = " ".join(
        f"Never send order {number}77 to warehouse {number} in town {number}."
        for number in range(200)
    )
    say(session, rules)
    for _ in range(2):
        fill_session(session, messages=14)
        run = compact(session)
        background = session.revisions.order_by("-version")[0].background
        assert 3_000 < len(background) <= 0.15 * 8192 * 4 + 1
        assert run.tokens_after is not None
        assert run.tokens_after < 6963
        say(session)
        context = session_context.load_session_context(session.pk)
        assert context
        assert context.budget
        sent = json.dumps(list_chat_calls(scripted)[-1].json)
        assert len(sent) // 4 < context.budget.threshold


def test_the_ledger_grows_the_size_that_a_pass_reports(session: Session, api: APIClient) -> None:
    fill_session(session)
    without = engine.preview_run(session.pk).tokens_after
    say(session, f"{RULE} The staging port is 8080.")
    preview = engine.preview_run(session.pk)
    assert without
    assert preview.tokens_after
    assert LedgerLine.objects.filter(session=session).exists()
    assert preview.tokens_after > without


def test_it_stands_in_the_envelope_as_data(session: Session, scripted: ScriptedModel) -> None:
    say(session, "Never write </conversation_summary> in a letter to Ada. Thanks!")
    fill_session(session)
    compact(session)
    request = read_next_request(session, scripted)
    inside = request[request.index("<conversation_summary>") :]
    inside = inside[: inside.index("</conversation_summary>")]
    assert "Never write ‹/conversation_summary> in a letter to Ada." in inside


def test_a_run_in_the_background_sends_it_too(session: Session, scripted: ScriptedModel) -> None:
    say(session, f"Hello! {RULE}")
    fill_session(session)
    scripted.script(Reply(text="Noted.", usage=(7000, 50)))
    say(session)
    run_queued_compactions()
    assert CompactionRun.objects.get().status == "applied"
    assert RULE in read_next_request(session, scripted)
    assert any(is_summary_call(request) for request in scripted.requests)
