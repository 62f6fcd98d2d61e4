"""Every knob of summary, state and memory has an effect: on the wire, or in what is stored."""

import dataclasses
import json
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import pytest
from django.db import connection

from chatcore.context import revisions
from chatcore.models import ContextRevision, Session
from compaction.core.knobs import SummaryKnobs, VerifyKnobs
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.systems import describe_traits
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.runs import engine, leases
from compaction.summaries.source import render_lines
from compaction.summaries.templates import SUMMARY_TEMPLATES
from compaction.systems.kit.settings import WritingKnobs
from compaction.systems.lota import store as summary_state
from compaction.systems.lota.models import WorkingState
from compaction.systems.lota.settings import DeltaKnobs, MemoryKnobs, StateKnobs
from models_registry.models import AiModel
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_summary_calls,
    read_prompt,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.summary_knobs import DOWN, cheap, compact, models

__all__ = ["cheap"]

pytestmark = pytest.mark.django_db(transaction=True)
TURNED: set[str] = set()
Test = TypeVar("Test", bound=Callable[..., None])


def turns(*knobs: str) -> Callable[[Test], Test]:
    """Marks the test of a knob; the last test here sees to it that none is forgotten."""

    def mark(test: Test) -> Test:
        TURNED.update(knobs)
        return test

    return mark


def longest(scripted: ScriptedModel) -> int | None:
    request = list_summary_calls(scripted)[0].json
    tokens: int | None = request.get("max_tokens", request.get("max_completion_tokens"))
    return tokens


# What a call holds; the rest is in test_cache_reuse.py
@turns("summary.prompt")
@pytest.mark.parametrize(("prompt", "is_quoted"), [("transcript", True), ("conversation", False)])
def test_a_call_holds_quoted_messages_or_the_talk_itself(
    session: Session, scripted: ScriptedModel, prompt: str, is_quoted: bool
) -> None:
    AiModel.objects.filter(name="test-model").update(context_window_size=32_000)
    fill_session(session, messages=40)
    scripted.default = Reply(text=SUMMARY)
    compact(session, summary={"prompt": prompt})
    assert ("<transcript>" in str(scripted.requests[0].json["messages"])) is is_quoted


# Who writes
@turns("summary.model")
def test_the_policy_names_the_model_that_writes(
    full: Session, scripted: ScriptedModel, cheap: AiModel
) -> None:
    run = compact(full, summary={"model": "scripted/cheap"})
    assert (run.model, models(scripted)) == ("scripted/cheap", ["cheap"])
    assert longest(scripted) == 700


# What is asked for
@turns("summary.template")
@pytest.mark.parametrize("name", SUMMARY_TEMPLATES)
def test_each_template_asks_for_its_own_headings(
    full: Session, scripted: ScriptedModel, name: str
) -> None:
    compact(full, summary={"template": name})
    instruction = read_prompt(scripted).split("</transcript>")[1]
    assert all(heading in instruction for heading in SUMMARY_TEMPLATES[name].headings)
    assert instruction.rstrip().endswith("nothing but the summary.")
    first_tag = SUMMARY_TEMPLATES[name].tags.input or "transcript"
    assert read_prompt(scripted).startswith(f"<{first_tag}>")
    assert ("1. [user]\n0001" in read_prompt(scripted)) is SUMMARY_TEMPLATES[name].numbers_messages


@turns("summary.max_tokens", "summary.min_words", "summary.max_words")
def test_the_length(full: Session, scripted: ScriptedModel) -> None:
    compact(full, summary={"max_tokens": 400, "min_words": 30, "max_words": 90})
    assert longest(scripted) == 400
    assert "in 30 to 90 words" in read_prompt(scripted)


@turns("summary.spans")
@pytest.mark.parametrize(("spans", "has_earlier"), [("rewritten", True), ("frozen", False)])
def test_a_later_summary_is_written_with_or_without_the_earlier_one(
    full: Session, scripted: ScriptedModel, spans: str, has_earlier: bool
) -> None:
    engine.compact_now(
        full.pk, trigger="manual", overrides={"summary": {"spans": spans}}, up_to_seq=4
    )
    scripted.default = summarize_or_chat(summary=Reply(text="The flight leaves at noon."))
    compact(full, summary={"spans": spans})
    assert (SUMMARY in read_prompt(scripted, 1)) is has_earlier
    full.refresh_from_db()
    assert (SUMMARY in (full.compacted_summary or "")) is not has_earlier


@turns("summary.room_ratio")
@pytest.mark.parametrize(("ratio", "tokens"), [(None, 400), (0.01, 400), (0.1, 819)])
def test_the_room_of_a_summary_grows_with_the_window(
    full: Session, scripted: ScriptedModel, ratio: float | None, tokens: int
) -> None:
    compact(full, summary={"max_tokens": 400, "room_ratio": ratio})
    assert longest(scripted) == tokens


@turns("summary.source")
@pytest.mark.parametrize(
    ("source", "shown_text"), [("shown", "only its edges"), ("originals", "0001 lisbon trip")]
)
def test_messages_are_told_as_shown_or_as_they_were(
    full: Session, scripted: ScriptedModel, source: str, shown_text: str
) -> None:
    edits = [
        revisions.MessageEdit(message_seq=1, kind="excerpted", replacement="[user] only its edges")
    ]
    edit = ContextRevision.Source.EDIT
    revisions.install_revision(
        full.pk, base_version=0, summary=None, boundary_seq=None, edits=edits, source=edit
    )
    compact(full, summary={"source": source})
    assert shown_text in read_prompt(scripted)
    assert ("only its edges" in read_prompt(scripted)) is (source == "shown")


CALLS = (
    TranscriptEntry(seq=1, role="user", content="Look."),
    TranscriptEntry(
        seq=2,
        role="assistant",
        calls=(TranscriptCall(id="a", name="grep"), TranscriptCall(id="b", name="linear_list")),
    ),
    TranscriptEntry(seq=3, role="tool", call_id="a", content="three lines"),
    TranscriptEntry(seq=4, role="tool", call_id="b", content="two issues"),
    TranscriptEntry(
        seq=5,
        role="assistant",
        content="Asking.",
        calls=(TranscriptCall(id="c", name="userQuestions"),),
    ),
    TranscriptEntry(seq=6, role="tool", call_id="c", tool_name="userQuestions", content="yes"),
    TranscriptEntry(seq=7, role="assistant", calls=(TranscriptCall(id="d", name="grep"),)),
    TranscriptEntry(seq=8, role="tool", call_id="d", content="nothing"),
)


@turns("summary.tools", "summary.tool_names", "summary.tool_prefixes")
@pytest.mark.parametrize(
    ("knobs", "remaining"),
    [
        ({"tools": "all"}, [1, 2, 3, 4, 5, 6, 7, 8]),
        ({"tools": "listed"}, [1, 5]),
        ({"tools": "listed", "tool_names": ("grep",)}, [1, 2, 3, 5, 7, 8]),
        ({"tools": "listed", "tool_prefixes": ("linear",)}, [1, 2, 4, 5]),
        (
            {
                "tools": "listed",
                "tool_names": ("userQuestions",),
                "tool_prefixes": ("linear", "gr"),
            },
            [1, 2, 3, 4, 5, 6, 7, 8],
        ),
    ],
    ids=["all", "none", "by name", "by prefix", "by both"],
)
def test_only_the_tools_that_are_listed_are_told(
    knobs: dict[str, Any], remaining: list[int]
) -> None:
    traits = describe_traits(Policy.parse({"summary": knobs}, ONECLAW))
    lines = render_lines(CALLS, traits, with_numbers=True)
    assert [int(line.split(".")[0]) for line in lines] == remaining
    assert ("grep" in "".join(lines)) is bool({2, 3} <= set(remaining))


# How it is called
@turns("summary.retries")
@pytest.mark.parametrize("retries", [0, 1, 4])
def test_a_failed_call_is_made_again_so_many_times(
    full: Session, scripted: ScriptedModel, retries: int
) -> None:
    scripted.default = summarize_or_chat(summary=DOWN)
    run = compact(full, summary={"retries": retries})
    assert (run.status in ("failed", "fell_back"), run.provider_calls) == (True, 1 + retries)


@turns("summary.retry")
@pytest.mark.parametrize(("retry", "calls"), [("call", 4), ("run", 5)])
def test_what_is_done_again_is_the_call_or_the_whole_run(
    full: Session, scripted: ScriptedModel, retry: str, calls: int
) -> None:
    """Of four chunks the second one fails once."""
    replies = iter([Reply(text=SUMMARY), DOWN])
    scripted.default = lambda _: next(replies, Reply(text=SUMMARY))
    run = compact(full, summary={"retry": retry, "retries": 1, "chunk_chars": 8_000})
    assert (run.status, run.provider_calls) == ("applied", calls)


@pytest.mark.usefixtures("give_back_at_once")
@turns("summary.backoff")
def test_it_waits_before_each_retry_the_last_wait_again_for_more(
    full: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[tuple[float, Any]] = []

    def sleep(seconds: float) -> None:
        waited.append((seconds, connection.connection))

    monkeypatch.setattr(
        leases, "wait_while_claimed", partial(leases.wait_while_claimed, sleep=sleep)
    )
    scripted.default = summarize_or_chat(summary=DOWN)
    compact(full, summary={"retries": 4, "backoff": [1, 2, 4]})
    assert [seconds for seconds, _ in waited] == [1, 2, 4, 4]
    assert {connection for _, connection in waited} == {None}  # no connection is held meanwhile


@turns("summary.timeout")
def test_a_call_has_so_many_seconds(full: Session, scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat(summary=Reply(hang=True))
    run = compact(full, summary={"timeout": 0.3, "retries": 0})
    assert "within 0.3 seconds" in run.reason


# How a long history is cut
@turns("summary.chunk_chars")
def test_no_call_is_told_more_characters_than_that(full: Session, scripted: ScriptedModel) -> None:
    compact(full, summary={"chunk_chars": 5_000})
    told_in_each = [
        read_prompt(scripted, index).split("</transcript>")[0]
        for index in range(len(list_summary_calls(scripted)))
    ]
    assert len(told_in_each) == 5
    assert all(len(text) <= 5_000 + len(SUMMARY) + 100 for text in told_in_each)


@turns("summary.merging")
@pytest.mark.parametrize("merging", ["sequential", "parts"])
def test_chunks_are_told_one_into_the_next_or_apart_and_then_merged(
    full: Session, scripted: ScriptedModel, merging: str
) -> None:
    counted = iter(range(1, 100))
    scripted.default = lambda _: Reply(text=f"PART {next(counted)}. The trip to Lisbon is planned.")
    run = compact(full, summary={"merging": merging, "chunk_chars": 5_000})
    texts = [request.json["messages"][-1]["content"] for request in list_summary_calls(scripted)]
    held_parts = [
        [number for number in range(1, 10) if f"PART {number}." in text] for text in texts
    ]
    if merging == "sequential":
        assert held_parts == [[], [1], [2], [3], [4]]
    else:
        assert held_parts == [[], [], [], [], [], [1, 2, 3, 4, 5]]
        assert "summaries of its parts" in texts[-1]
        assert "lisbon trip" not in texts[-1]
    assert run.summary_after == f"PART {len(texts)}. The trip to Lisbon is planned."


@turns("summary.rollup_tokens")
@pytest.mark.parametrize(("limit", "calls"), [(None, 1), (500, 1), (20, 2)])
def test_a_summary_above_the_limit_is_itself_summarized(
    full: Session, scripted: ScriptedModel, limit: int | None, calls: int
) -> None:
    scripted.script(Reply(text=SUMMARY), Reply(text="Lisbon in May."))
    run = compact(full, summary={"rollup_tokens": limit})
    assert (run.provider_calls, run.summary_after) == (
        calls,
        SUMMARY if calls == 1 else "Lisbon in May.",
    )
    if calls == 2:
        assert "grown too long" in read_prompt(scripted, 1)
        assert "lisbon trip" not in read_prompt(scripted, 1)


# What becomes of a summary that is untrue
INVENTED = "They talk about a trip to Lisbon. The deposit is 760 euros."


@turns("verify.checks")
@pytest.mark.parametrize(("checks", "status"), [(False, "applied"), (True, "fell_back")])
def test_an_untrue_summary_is_refused(
    full: Session, scripted: ScriptedModel, checks: bool, status: str
) -> None:
    scripted.default = Reply(text=INVENTED)
    assert compact(full, verify={"checks": checks}).status == status


@turns("verify.repair")
@pytest.mark.parametrize(("repair", "status"), [(False, "fell_back"), (True, "applied")])
def test_or_its_untrue_sentences_are_removed(
    full: Session, scripted: ScriptedModel, repair: bool, status: str
) -> None:
    scripted.default = Reply(text=INVENTED)
    run = compact(full, verify={"checks": True, "repair": repair})
    assert (run.status, "760" in (run.summary_after or "")) == (status, False)


@turns("verify.extract")
@pytest.mark.parametrize(("extract", "status"), [(False, "fell_back"), (True, "applied")])
def test_a_summary_that_nobody_writes_is_an_extract(
    full: Session, scripted: ScriptedModel, extract: bool, status: str
) -> None:
    scripted.default = DOWN
    run = compact(full, verify={"extract": extract})
    assert (run.status, "lisbon trip" in (run.summary_after or "")) == (status, extract)


# State and memory
DELTA = {
    name: {"add": [f"{name} {number}" for number in range(1, 13)]}
    for name in ("decisions", "constraints", "tasks", "questions")
}
DELTA |= {
    name: {"add": [f"{name} {number}" for number in range(1, 13)]}
    for name in ("risks", "artifacts", "contributions")
}
WITH_DELTA = Reply(
    text=SUMMARY + "\n```json\n" + json.dumps(DELTA | {"memory": ["Alice likes tea."]}) + "\n```"
)


@turns("summary.state_delta")
@pytest.mark.parametrize("expects_delta", [True, False])
def test_a_delta_is_asked_for_only_where_it_is_wanted(
    full: Session, scripted: ScriptedModel, expects_delta: bool
) -> None:
    compact(full, summary={"state_delta": expects_delta})
    assert (
        ("```json" in read_prompt(scripted))
        is ("<existing-state>" in read_prompt(scripted))
        is expects_delta
    )


@turns(*(f"state.{each.name}" for each in dataclasses.fields(StateKnobs)))
@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(StateKnobs)])
def test_each_section_keeps_so_many_items_the_newest(
    full: Session, scripted: ScriptedModel, name: str
) -> None:
    scripted.script(WITH_DELTA)
    compact(full, summary={"state_delta": True}, state={name: 3})
    state = summary_state.load_structured_state(full.pk).sections
    assert state[name] == (f"{name} 10", f"{name} 11", f"{name} 12")
    limits = dataclasses.asdict(ONECLAW.get(StateKnobs)) | {name: 3}
    assert {section: len(items) for section, items in state.items()} == limits


def test_a_section_of_none_is_not_asked_for(full: Session, scripted: ScriptedModel) -> None:
    scripted.script(WITH_DELTA)
    compact(full, summary={"state_delta": True}, state={"risks": 0})
    assert "risks" not in read_prompt(scripted)
    assert summary_state.load_structured_state(full.pk).sections["risks"] == ()


@turns("memory.entries", "memory.fold")
@pytest.mark.parametrize(
    ("knobs", "remaining"), [((0, 0), 4), ((6, 3), 5), ((5, 3), 2), ((5, 1), 4)]
)
def test_the_memory_is_folded_when_it_is_full(
    full: Session, scripted: ScriptedModel, knobs: tuple[int, int], remaining: int
) -> None:
    WorkingState.objects.create(
        session_id=full.pk, memory=[f"Entry {number}" for number in range(4)]
    )
    scripted.script(WITH_DELTA, Reply(text="Alice has said many things."))
    overrides = {
        "summary": {"state_delta": True},
        "memory": {"entries": knobs[0], "fold": knobs[1]},
    }
    engine.compact_now(full.pk, trigger="manual", overrides=overrides, up_to_seq=6)
    structured_state = summary_state.load_structured_state(full.pk)
    assert len(structured_state.memory) == remaining
    assert bool(structured_state.memory_summary) is (len(list_summary_calls(scripted)) == 2)
    assert ('"memory"' in read_prompt(scripted)) is bool(knobs[0])


def test_every_knob_of_these_groups_was_turned() -> None:
    groups: tuple[Any, ...] = (
        SummaryKnobs,
        WritingKnobs,
        DeltaKnobs,
        StateKnobs,
        MemoryKnobs,
        VerifyKnobs,
    )
    assert {
        f"{group.prefix}.{each.name}" for group in groups for each in dataclasses.fields(group)
    } == TURNED
