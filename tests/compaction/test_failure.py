"""Failed summaries: one silent retry, then trimmed requests, one notice, and longer waits."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.base.databases.clock import read_clock
from chatcore.models import Session
from chatcore.turns.messages import pin_message
from compaction.models import CompactionPolicy, CompactionRun, SessionState
from compaction.runs import engine
from tests.support.compaction_sessions import (
    LARGE_USAGE,
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_event_data,
    list_event_names,
    list_summary_calls,
    read_stored_messages,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

NOTICE = "Conversation history has been automatically trimmed"
DOWN = Reply(status=500, text="out of order")

FAILURES = {
    "server error": Reply(status=500, text="out of order"),
    "empty": Reply(text=""),
    "whitespace": Reply(text=" \n\t "),
    "reasoning only": Reply(text="<think>Let me see what they said.</think>"),
    "unfinished reasoning": Reply(text="<think>Let me see what they said"),
    # A shorter one gets more room: its model may have thought.
    "cut off": Reply(
        text="Alice plans a trip and then " + " ".join(map(str, range(3000))), finish="length"
    ),
    "refused": Reply(text="I'm sorry, but I can't help with that."),
    "tool call": Reply(
        tool_calls=[make_tool_call("fetch_url", {"url": "http://x"})], finish="tool_calls"
    ),
    "not smaller": Reply(
        text="Some words that differ from one another: " + " ".join(map(str, range(9000)))
    ),
    "loop": Reply(text="The user asked about the trip to Lisbon again. " * 40),
    "further chat": Reply(text="assistant: Sure, I can book that flight for you!\nuser: Thanks!"),
    "cut connection": Reply(text="Alice plans a trip.", chunks=["Alice ", "plans"], cut_after=1),
    "html": Reply(body=b"<html>gateway</html>", headers={"Content-Type": "text/html"}),
}


def state(session: Session) -> SessionState:
    return SessionState.objects.get(pk=session.pk)


def with_broken_summaries(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=DOWN)


@pytest.mark.parametrize("reply", mark_others_slow(FAILURES.values(), first=4), ids=FAILURES.keys())
def test_what_is_no_summary_is_asked_for_once_more_and_then_nothing_is_stored(
    full: Session, scripted: ScriptedModel, reply: Reply
) -> None:
    before = read_stored_messages(full)
    scripted.script(reply, reply)
    run = engine.compact_now(full.pk, trigger="after_response")
    full.refresh_from_db()
    assert run.status == "fell_back", run.reason
    assert len(list_summary_calls(scripted)) == run.provider_calls == 2
    assert run.error
    assert (full.compacted_summary, full.compact_boundary_seq, full.context_version) == (
        None,
        None,
        0,
    )
    assert read_stored_messages(full) == before


FORBIDDEN = {
    "no such key": Reply(status=401, text="no such key"),
    "no right": Reply(status=403, text="this key may not use the model"),
    "no money": Reply(status=403, text="your credit balance is too low"),
    "a bad key as 400": Reply(status=400, text="API key not valid. Please pass a valid API key."),
}


@pytest.mark.parametrize("reply", FORBIDDEN.values(), ids=FORBIDDEN.keys())
def test_a_refused_key_is_not_tried_again(
    full: Session, scripted: ScriptedModel, reply: Reply
) -> None:
    before = read_stored_messages(full)
    scripted.default = reply
    run = engine.compact_now(full.pk, trigger="after_response")
    assert (run.status, run.provider_calls, len(scripted.requests)) == ("fell_back", 1, 1)
    assert run.error.rpartition(": ")[2] == reply.text
    assert read_stored_messages(full) == before


@pytest.mark.parametrize("policy", ["neurolink", "lota", "wolffish", "baseagent", "chatcore"])
def test_no_policy_tries_a_refused_key_again(
    full: Session, scripted: ScriptedModel, policy: str
) -> None:
    """Lota repeats its whole run, Wolffish waits up to 31 s, and chatcore has many spans."""
    Session.objects.filter(pk=full.pk).update(policy=policy)
    fill_session(full, messages=40)
    scripted.default = FORBIDDEN["no such key"]
    run = engine.compact_now(full.pk, trigger="manual")
    assert (len(scripted.requests), run.provider_calls) == (1, 1), run.status


@pytest.mark.parametrize("reply", mark_others_slow(FAILURES.values(), first=4), ids=FAILURES.keys())
def test_a_retry_that_works_is_silent(full: Session, scripted: ScriptedModel, reply: Reply) -> None:
    scripted.script(reply)
    run = engine.compact_now(full.pk, trigger="after_response")
    assert (run.status, run.provider_calls, run.summary_after) == ("applied", 2, SUMMARY)
    names = [name for name in list_event_names(full) if name != "compaction.progress"]
    assert names == ["compaction.started", "compaction.applied"]


def test_a_provider_that_never_answers_is_left_after_its_time_out(
    full: Session, scripted: ScriptedModel
) -> None:
    provider = full.model.provider  # type: ignore[union-attr]
    provider.timeout_seconds = 0.3
    provider.save()
    scripted.script(Reply(hang=True), Reply(hang=True))
    run = engine.compact_now(full.pk, trigger="after_response")
    assert (run.status, run.provider_calls) == ("fell_back", 2)


def test_the_old_summary_stays_byte_for_byte(full: Session, scripted: ScriptedModel) -> None:
    engine.compact_now(full.pk, trigger="manual")
    fill_session(full, messages=14)
    with_broken_summaries(scripted)
    assert engine.compact_now(full.pk, trigger="manual").status == "fell_back"
    full.refresh_from_db()
    assert (full.compacted_summary, full.compact_boundary_seq) == (SUMMARY, 11)


def test_the_user_is_told_once_for_a_failed_run(full: Session, scripted: ScriptedModel) -> None:
    with_broken_summaries(scripted)
    run = engine.compact_now(full.pk, trigger="after_response")
    assert list_event_names(full) == ["compaction.started", "compaction.failed", "context.trimmed"]
    assert list_event_data(full, "context.trimmed") == [{"notice": NOTICE, "run": str(run.pk)}]
    for _ in range(2):
        say(full)
    assert len(list_event_data(full, "context.trimmed")) == 1


def test_rest_tells_once_that_requests_are_trimmed(
    full: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    with_broken_summaries(scripted)
    engine.compact_now(full.pk, trigger="after_response")
    path = f"/api/v1/sessions/{full.pk}/messages"
    told = [api.post(path, {"content": "What now?"}).json()["notices"] for _ in range(3)]
    assert told == [[NOTICE], [], []]


def test_the_next_request_is_trimmed_and_the_database_is_not(
    full: Session, scripted: ScriptedModel
) -> None:
    fill_session(full, messages=2)
    before = read_stored_messages(full)
    with_broken_summaries(scripted)
    engine.compact_now(full.pk, trigger="after_response")
    turn = say(full, "What now?")
    assert (turn.status, turn.notices) == ("completed", [NOTICE])
    sent = list_chat_calls(scripted)[-1].json["messages"]
    contents = [message["content"] for message in sent if message["role"] != "system"]
    assert contents[-1] == "What now?"
    # 13 of 500 tokens are under 6,963 with what is new; four more are left out, so that the next
    # turns begin with the same message and the provider's cache holds.
    assert contents[0].startswith("0009")
    assert read_stored_messages(full)[: len(before)] == before
    assert full.messages.order_by("-seq")[0].context_version is None


def test_a_pinned_message_is_not_trimmed(full: Session, scripted: ScriptedModel) -> None:
    fill_session(full, messages=2)
    pin_message(full.messages.get(seq=1))
    with_broken_summaries(scripted)
    engine.compact_now(full.pk, trigger="after_response")
    say(full, "What now?")
    sent = list_chat_calls(scripted)[-1].json["messages"]
    contents = [message["content"] for message in sent if message["role"] != "system"]
    assert contents[0].startswith("0001")
    assert not contents[1].startswith("0002")
    assert contents[-1] == "What now?"


def test_a_failed_run_by_hand_on_a_short_session_trims_nothing_and_says_nothing_of_it(
    session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=8)
    with_broken_summaries(scripted)
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "failed"
    assert list_event_names(session) == ["compaction.started", "compaction.failed"]
    assert say(session).notices == []


def test_after_a_failure_automatic_runs_wait_longer_and_longer(
    full: Session, scripted: ScriptedModel
) -> None:
    with_broken_summaries(scripted)

    def fail_once() -> tuple[timedelta, timedelta]:
        """Return the shortest and the longest wait that it can be, by the database's clock."""
        before = read_clock()
        engine.compact_now(full.pk, trigger="after_response")
        not_before = state(full).not_before
        assert not_before is not None
        return not_before - read_clock(), not_before - before

    for failures, seconds in ((1, 30), (2, 60), (3, 120)):
        shortest, longest = fail_once()
        assert state(full).failures == failures
        assert shortest <= timedelta(seconds=seconds) <= longest
    SessionState.objects.update(failures=30)
    shortest, longest = fail_once()
    assert shortest <= timedelta(hours=1) <= longest


def test_while_it_waits_no_response_starts_a_run(full: Session, scripted: ScriptedModel) -> None:
    with_broken_summaries(scripted)
    engine.compact_now(full.pk, trigger="after_response")
    say(full)
    assert CompactionRun.objects.count() == 1
    assert load_usage(full.pk)["automatic"] == "waiting"
    SessionState.objects.update(not_before=timezone.now())
    assert load_usage(full.pk)["automatic"] == "on"
    say(full)
    assert CompactionRun.objects.count() == 2


def test_a_success_forgives(full: Session, scripted: ScriptedModel) -> None:
    with_broken_summaries(scripted)
    engine.compact_now(full.pk, trigger="after_response")
    scripted.default = summarize_or_chat()
    assert engine.compact_now(full.pk, trigger="after_response").status == "applied"
    now = state(full)
    assert (now.failures, now.not_before, now.trimming) == (0, None, False)


def test_a_run_by_hand_forgives(full: Session, scripted: ScriptedModel) -> None:
    SessionState.objects.create(
        session_id=full.pk, failures=5, fruitless=2, not_before=timezone.now() + timedelta(hours=1)
    )
    engine.request_run(full.pk, trigger="manual")
    assert load_usage(full.pk)["automatic"] == "on"


def test_two_automatic_runs_that_gained_almost_nothing_stop_the_rest(
    full: Session, scripted: ScriptedModel
) -> None:
    """Let each summary be nearly as long as what it replaces."""
    words = " ".join(map(str, range(10_000, 20_000)))

    def long_winded(request: dict[str, Any]) -> Reply:
        source = request["messages"][-1]["content"]
        if "<transcript>" not in source:
            return Reply(text="Yes.", usage=LARGE_USAGE)
        return Reply(text=words[: int(source.index("</transcript>") * 0.93)])

    scripted.default = long_winded
    Session.objects.filter(pk=full.pk).update(policy="wide")
    CompactionPolicy.objects.create(name="wide", overrides={"protect": {"ratio": 0.8}})
    for fruitless in (1, 2):
        run = engine.compact_now(full.pk, trigger="after_response")
        assert run.status == "applied", run.reason
        assert state(full).fruitless == fruitless
        fill_session(full, messages=2)
    assert load_usage(full.pk)["automatic"] == "stopped"
    say(full)
    assert CompactionRun.objects.count() == 2
