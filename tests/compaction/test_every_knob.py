"""Every knob of a policy makes a difference that shows from outside.

Here are the knobs of size, of shortening on the way in, and of how a session goes on. A row is a
knob, two of its values, a function that looks at the effect, and the other knobs it needs. The
knobs of protection and the stages are in test_every_stage_knob; those of summary, state and memory
in test_every_summary_knob. A knob that is in none of the three fails the last test.
"""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from django.utils import timezone

from chatcore.context.live_messages import load_active_revision
from chatcore.models import Message, Session
from compaction.compactor import Compactor
from compaction.core.attachments import FileEntry, fit_files
from compaction.core.budget import plan
from compaction.core.estimate import LastUsage, measure
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.models import CompactionPolicy, CompactionRun
from compaction.requests import guard
from compaction.runs import engine, leases
from compaction.systems.kit.outputs import truncate_output
from tests.compaction import test_every_stage_knob, test_every_summary_knob
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    read_message_texts,
    read_system_text,
    say,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize

Knobs = dict[str, Any]


# Those that need no database: what a policy makes of plain data.

LINES = "".join(f"line {number} of an output\n" for number in range(200))
TALK = Transcript(
    entries=(
        TranscriptEntry(
            seq=1, role="user", content="Look:\n```\ncode()\n```\n第一句话。", images=1
        ),
        TranscriptEntry(
            seq=2,
            role="assistant",
            content="Yes.",
            calls=(TranscriptCall(id="a", name="read", arguments='{"path": "x"}'),),
        ),
        TranscriptEntry(seq=3, role="tool", content='{"rows": [1, 2, 3]}', call_id="a"),
        TranscriptEntry(seq=4, role="user", content="And?"),
    ),
    system="Be brief. " * 9,
    tools="read a file " * 9,
    family="anthropic",
)
FILES = [
    FileEntry(size=200_000, text="x" * 200_000, tokens=50_000),
    FileEntry(size=9_000, text="y" * 9_000, tokens=2_250),
]


def planned(policy: Policy) -> Any:
    """The budget of 10,000 tokens."""
    return plan(policy, 10_000, output_reserve=700)


def planned_for_nothing_known(policy: Policy) -> Any:
    """The budget of an unknown window."""
    return plan(policy, None, family="anthropic")


def overs(policy: Policy) -> Any:
    """Whether the threshold itself is over."""
    budget = plan(policy, 10_000)
    return budget and budget.is_over(8_500)


def recovering(policy: Policy) -> Any:
    """The threshold after an overflow."""
    budget = plan(policy, 10_000)
    return budget and budget.reduce_for_recovery().threshold


def measured(policy: Policy) -> Any:
    """The size of a small conversation that nobody has counted."""
    return measure(TALK, policy)


def calibrated(policy: Policy) -> Any:
    """The size of the same, after a call that counted more."""
    return measure(TALK, policy, LastUsage(tokens=5_000, input=4_900, after_seq=3))


def kept_output(policy: Policy) -> Any:
    """What is stored of an output of 200 lines."""
    return truncate_output(LINES, policy)


def sent_files(policy: Policy) -> Any:
    """What is sent of two files, where there is room for 10,000 tokens."""
    return [
        len(text)
        for text in fit_files(FILES, int(10_000 * policy.files.budget_ratio), policy.files)
    ]


SHORT = {"tool_result": {"limit": 1_000}}
RESERVED = {"budget": {"output_reserve": 4_000, "floor_ratio": 0.1}}

PURE: list[tuple[str, Any, Any, Callable[[Policy], Any], Knobs]] = [
    ("window.unknown", "disable", 32_000, planned_for_nothing_known, {}),
    ("window.by_family", {}, {"anthropic": 32_000}, planned_for_nothing_known, {}),
    ("budget.basis", "window", "input", planned, RESERVED),
    ("budget.output_reserve", 0, "model", planned, {}),
    ("budget.safety_margin", 0, 2_000, planned, RESERVED | {"trigger": {"clamp": True}}),
    ("budget.floor_ratio", 0.1, 0.9, planned, {"budget": {"output_reserve": 4_000}}),
    ("trigger.threshold", 0.85, 0.5, planned, {}),
    ("trigger.clamp", False, True, planned, RESERVED),
    ("trigger.strict", True, False, overs, {}),
    ("estimate.method", "characters", "features", measured, {}),
    ("estimate.chars_per_token", 4, 1.5, measured, {}),
    ("estimate.code_chars_per_token", None, 1, measured, {}),
    ("estimate.rounding", "floor", "ceil", measured, {}),
    ("estimate.per_message", 0, 4, measured, {}),
    ("estimate.per_message_chars", 0, 30, measured, {}),
    ("estimate.per_conversation", 0, 24, measured, {}),
    ("estimate.image_tokens", 1_024, 1_000, measured, {}),
    ("estimate.family_multiplier", {}, {"anthropic": 1.23}, measured, {}),
    ("estimate.safety_multiplier", 1, 1.15, measured, {}),
    ("estimate.count_system", True, False, measured, {}),
    ("estimate.count_tools", True, False, measured, {}),
    ("estimate.calibration", "last_usage", "none", calibrated, {}),
    ("target.ratio", None, 0.3, planned, {}),
    ("target.otherwise", "tail", "fits", planned, {}),
    ("overflow.recovery_ratio", 0.7, 0.5, recovering, {}),
    ("tool_result.limit", 1_000, 2_000, kept_output, {}),
    ("tool_result.unit", "chars", "tokens", kept_output, SHORT),
    ("tool_result.lines", None, 5, kept_output, SHORT),
    ("tool_result.keep", "head", "tail", kept_output, SHORT),
    ("tool_result.marker", "[{kept} of {total}]", "[{omitted} gone]", kept_output, SHORT),
    ("files.budget_ratio", 0.6, 0.3, sent_files, {}),
    ("files.sharing", "proportional", "even", sent_files, {"files": {"fast_path_bytes": 100}}),
    ("files.fast_path_bytes", 100, 10_000, sent_files, {}),
    ("files.preview_bytes", 5_242_880, 100_000, sent_files, {}),
    ("files.preview_chars", 2_000, 500, sent_files, {"files": {"preview_bytes": 100_000}}),
]


def turn_knob(knob: str, value: Any, base_knobs: Knobs) -> Knobs:
    """The overrides with one knob more."""
    if "." not in knob:
        return base_knobs | {knob: value}
    group, _, name = knob.partition(".")
    return base_knobs | {group: {**base_knobs.get(group, {}), name: value}}


@pytest.mark.parametrize(
    ("knob", "one", "other", "look", "base_knobs"), PURE, ids=[row[0] for row in PURE]
)
def test_a_knob_changes_what_is_made_of_plain_data(
    knob: str, one: Any, other: Any, look: Callable[[Policy], Any], base_knobs: Knobs
) -> None:
    assert look(Policy.parse(turn_knob(knob, one, base_knobs), ONECLAW)) != look(
        Policy.parse(turn_knob(knob, other, base_knobs), ONECLAW)
    )


# Those that show in a living session.


def asked_for(session: Session, scripted: ScriptedModel) -> Any:
    """Whether a response over the threshold asks for a run."""
    fill_session(session)
    scripted.script(Reply(text="Noted.", usage=(7_000, 50)))
    say(session)
    return CompactionRun.objects.count()


def stages_used(session: Session, scripted: ScriptedModel) -> Any:
    """What a run by hand does."""
    fill_session(session)
    return engine.compact_now(session.pk, trigger="manual").stages_used


def next_request(session: Session, scripted: ScriptedModel) -> Any:
    """What is sent after a compaction."""
    fill_session(session)
    engine.compact_now(session.pk, trigger="manual")
    say(session)
    return read_system_text(list_chat_calls(scripted)[0]), read_message_texts(
        list_chat_calls(scripted)[0]
    )


def without_summaries(session: Session, scripted: ScriptedModel) -> Any:
    """What a turn over the window comes to, and what is sent, when no summary can be written."""
    scripted.default = summarize_or_chat(summary=Reply(status=500))
    fill_session(session, messages=20)
    turn = say(session)
    return (
        turn.status,
        turn.notices,
        [read_system_text(request) for request in list_chat_calls(scripted)],
    )


def in_a_tool_round(session: Session, scripted: ScriptedModel) -> Any:
    """What the system text of a request between tool rounds says."""
    scripted.script(Reply(tool_calls=[make_tool_call("calculate", {"expression": "1+1"})]))
    say(session)
    return read_system_text(list_chat_calls(scripted)[1])


def spilled(session: Session, scripted: ScriptedModel) -> Any:
    """Whether the whole of a long output is kept."""
    return Compactor().choose_policy(*session.policy_names).truncate_output("x" * 40_000).full_text


def waited_for(session: Session, scripted: ScriptedModel) -> Any:
    """What became of an open run when a new turn has been answered."""
    fill_session(session)
    run = engine.request_run(session.pk, trigger="manual")
    say(session)
    return CompactionRun.objects.get(pk=run.pk).status


def leased_until(session: Session, scripted: ScriptedModel) -> Any:
    """For how many seconds a claimed run is held."""
    run = leases.claim_run(engine.request_run(session.pk, trigger="manual").pk)
    assert run is not None
    assert isinstance(run.lease_until, datetime)
    return round((run.lease_until - timezone.now()).total_seconds(), -1)


def claimed_at_once(session: Session, scripted: ScriptedModel) -> Any:
    """How many of three runs may be worked on at once."""
    others = [
        Session.objects.create(owner=session.owner, model=session.model, policy=session.policy)
        for _ in range(2)
    ]
    runs = [engine.request_run(each.pk, trigger="manual") for each in (session, *others)]
    return len([run for run in runs if leases.claim_run(run.pk, obey_limits=True)])


def given_up(session: Session, scripted: ScriptedModel) -> Any:
    """Whether a run over which a worker died is done with."""
    run = engine.request_run(session.pk, trigger="manual")
    CompactionRun.objects.filter(pk=run.pk).update(deaths=1)
    claimed = leases.claim_run(run.pk)
    return claimed and leases.has_exhausted_attempts(claimed)


def logged(session: Session, scripted: ScriptedModel) -> Any:
    """What is logged of a request that is sent unchanged, at the level that operators see."""
    logger = logging.getLogger("compaction.decisions")
    records: list[Any] = []
    handler = logging.Handler(logging.INFO)
    handler.emit = lambda record: records.append(record.msg)  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        say(session)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    return [record["action"] for record in records if record["trigger"] == "before_request"]


def brought_back(session: Session, scripted: ScriptedModel) -> Any:
    """What a question brings back of what was said about it before the boundary."""
    said = "The locker has number 4711."
    Message.objects.create(session=session, seq=1, role="user", content=said)
    Session.objects.filter(pk=session.pk).update(last_seq=1, message_count=1)
    summarize(session, "They talked.", boundary_seq=2)
    say(session, "Which number has the green locker?")
    return "4711" in read_message_texts(list_chat_calls(scripted)[0])[-1]


def remembered(session: Session, scripted: ScriptedModel) -> Any:
    """Whether a rule is still sent after its message was summarized."""
    rule = "Never book a flight on a Sunday from now on."
    say(session, rule)
    fill_session(session)
    engine.compact_now(session.pk, trigger="manual")
    session.refresh_from_db()
    say(session)
    return rule in read_system_text(list_chat_calls(scripted)[-1])


def planned_by_a_tool(session: Session, scripted: ScriptedModel) -> Any:
    fill_session(session)
    calls = [{"id": "c1", "name": "set_steps", "arguments": '["pack", "drive"]'}]
    session.messages.filter(seq=2).update(tool_calls=calls)
    session.messages.filter(seq=3).update(role="tool", tool_call_id="c1", tool_name="set_steps")
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    return '["pack", "drive"]' in load_active_revision(session).background


LIVED: list[tuple[str, Any, Any, Callable[[Session, ScriptedModel], Any], Knobs]] = [
    ("trigger.phases", ["after_response"], ["manual"], asked_for, {}),
    ("stages", ["summarize"], ["slide_window"], stages_used, {}),
    ("inject.place", "system_prefix", "first_user", next_request, {}),
    ("inject.heading", "", "[Compaction Summary]", next_request, {}),
    ("protect.plans", [], ["set_steps"], planned_by_a_tool, {}),
    ("inject.nudge", "", "Continue where you left off.", next_request, {}),
    (
        "inject.failure_nudge",
        "",
        "No summary could be written.",
        without_summaries,
        {"fallback": {"kind": "notice"}},
    ),
    ("fallback.kind", "drop_oldest", "error", without_summaries, {}),
    ("fallback.notify", True, False, without_summaries, {}),
    ("fallback.notice", "Trimmed.", "Cut.", without_summaries, {}),
    ("flow.while_compacting", "proceed", "wait", waited_for, {}),
    ("flow.lease_seconds", 10, 600, leased_until, {}),
    ("flow.workers", 1, 2, claimed_at_once, {}),
    ("flow.attempts", 1, 2, given_up, {}),
    ("flow.log_requests", False, True, logged, {}),
    ("flow.runtime_hint", False, True, in_a_tool_round, {}),
    ("tool_result.spill", False, True, spilled, {}),
    ("ledger.ratio", 0, 0.15, remembered, {}),
    ("recall.tokens", 0, 600, brought_back, {}),
    ("recall.threshold", 0, 1, brought_back, {"recall": {"tokens": 600}}),
]


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("knob", "one", "other", "look", "base_knobs"), LIVED, ids=[row[0] for row in LIVED]
)
def test_a_knob_changes_what_a_session_lives_through(
    knob: str,
    one: Any,
    other: Any,
    look: Callable[[Session, ScriptedModel], Any],
    base_knobs: Knobs,
    session: Session,
    scripted: ScriptedModel,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guard, "QUEUE_PATIENCE_SECONDS", 0.1)
    seen = []
    for value in (one, other):
        scripted.requests.clear()
        scripted.default = summarize_or_chat()
        CompactionRun.objects.all().delete()
        CompactionPolicy.objects.update_or_create(
            name="turned", defaults={"overrides": turn_knob(knob, value, base_knobs)}
        )
        seen.append(
            look(
                Session.objects.create(owner=session.owner, model=session.model, policy="turned"),
                scripted,
            )
        )
    assert seen[0] != seen[1]


def test_none_is_left_out() -> None:
    here = [row[0] for row in PURE] + [row[0] for row in LIVED]
    elsewhere = {
        effect[2] for effect in test_every_stage_knob.EFFECTS
    } | test_every_summary_knob.TURNED
    knobs = {
        f"{group}.{knob}"
        for group, value in ONECLAW.to_dict().items()
        if isinstance(value, dict)
        for knob in value
    }
    assert len(here) == len(set(here))
    assert knobs | {"stages"} == set(here) | elsewhere
