"""Every knob of protection and of the stages without a model call has a visible effect."""

from dataclasses import fields
from typing import Any

import pytest

from compaction.core.presets import ONECLAW
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.settings import PruneKnobs, TailKnobs
from compaction.systems.neurolink.settings import DedupeKnobs, SlideKnobs
from compaction.systems.wolffish.settings import ExcerptKnobs, StripKnobs
from tests.support.stage_transcripts import (
    answer,
    build_policy,
    compact,
    make_tool_exchange,
    result,
    talk,
    user,
)

BIG = "x" * 4_000

ROUNDS = tuple(
    e
    for seq in range(1, 13, 2)
    for e in (answer(seq, "", calls="a"), result(seq + 1, "a", BIG, tool="grep"))
)
READS = tuple(
    e
    for seq in range(1, 7, 2)
    for e in make_tool_exchange(seq, '{"path": "a"}', BIG if seq > 1 else "x" * 6_000)
)
MIXED = (
    user(1, BIG),
    *ROUNDS[2:],
    result(13, "lost", BIG, is_error=True),
    user(14, BIG),
    *talk(4, first=15),
)

# (stage, what the pass starts from besides, knob, its values, messages)
EFFECTS: list[tuple[str, dict[str, Any], str, tuple[Any, Any], tuple[TranscriptEntry, ...]]] = [
    ("summarize", {}, "protect.kind", ("token_ratio", "user_turns"), talk(20)),
    ("summarize", {}, "protect.ratio", (0.1, 0.2), talk(20)),
    ("summarize", {"protect": {"kind": "count"}}, "protect.count", (2, 4), talk(20)),
    (
        "summarize",
        {"protect": {"kind": "count_ratio", "ratio": 0.1}},
        "protect.minimum",
        (0, 4),
        talk(20),
    ),
    ("summarize", {}, "protect.first", (0, 2), talk(20)),
    ("excerpt", {"protect": {"kind": "count"}}, "protect.tools", ([], ["grep"]), ROUNDS),
    ("excerpt", {"protect": {"kind": "count"}}, "protect.errors", (False, True), MIXED),
    ("excerpt", {"protect": {"kind": "count"}}, "protect.min_chars", (0, 4_000), MIXED),
    (
        "strip_images",
        {"protect": {"kind": "count"}},
        "strip.placeholder",
        ("[a]", "[b]"),
        (answer(1, calls="x"), result(2, "x", images=1), answer(3)),
    ),
    (
        "strip_images",
        {"protect": {"kind": "count"}},
        "strip.other_placeholder",
        ("[a]", "[b]"),
        (user(1, images=1), answer(2)),
    ),
    ("prune_tool_outputs", {}, "prune.protect_tokens", (2_500, 3_500), ROUNDS),
    ("prune_tool_outputs", {}, "prune.minimum_savings", (0, 50_000), ROUNDS),
    (
        "prune_tool_outputs",
        {"prune": {"minimum_savings": 2_985}},
        "prune.strict",
        (False, True),
        ROUNDS,
    ),
    ("prune_tool_outputs", {}, "prune.crossing_item", ("keep", "prune"), ROUNDS),
    (
        "prune_tool_outputs",
        {},
        "prune.skip_user_turns",
        (0, 1),
        (*MIXED, user(20), answer(21, calls="z"), result(22, "z", BIG)),
    ),
    ("prune_tool_outputs", {}, "prune.protected_tools", ([], ["grep"]), ROUNDS),
    ("prune_tool_outputs", {}, "prune.placeholder", ("[a]", "[b]"), ROUNDS),
    ("dedupe_file_reads", {}, "dedupe.tools", (["read_file"], ["open"]), READS),
    ("dedupe_file_reads", {}, "dedupe.minimum_ratio", (0.3, 0.9), READS),
    ("dedupe_file_reads", {}, "dedupe.placeholder", ("[a {path}]", "[b {path}]"), READS),
    ("excerpt", {}, "excerpt.head_ratio", (0.1, 0.2), MIXED),
    ("excerpt", {}, "excerpt.head_cap", (100, 200), MIXED),
    ("excerpt", {}, "excerpt.tail_ratio", (0.05, 0.1), MIXED),
    ("excerpt", {}, "excerpt.tail_cap", (100, 200), MIXED),
    ("excerpt", {}, "excerpt.expected_ratio", (0.01, 0.9), (*ROUNDS, *ROUNDS[-2:])),
    ("excerpt", {}, "excerpt.marker", ("[a]", "[b {omitted}]"), MIXED),
    ("slide_window", {}, "slide.fraction", (0.2, 0.9), talk(50)),
    ("slide_window", {}, "slide.marker", ("[a]", "[b]"), talk(50)),
]
BASE: dict[str, dict[str, Any]] = {
    "prune_tool_outputs": {
        "protect": {"kind": "count", "count": 1},
        "prune": {"protect_tokens": 2_500, "minimum_savings": 0},
    },
    "dedupe_file_reads": {"protect": {"kind": "count", "count": 1}},
    "excerpt": {"protect": {"kind": "count", "count": 1}, "target": {"ratio": 0.5}},
    "slide_window": {"protect": {"kind": "count", "count": 1}, "target": {"ratio": 0.8}},
}


def run_stage(
    stage: str,
    base_knobs: dict[str, Any],
    knob: str,
    value: Any,
    entries: tuple[TranscriptEntry, ...],
) -> tuple[Any, ...]:
    """What a pass under one value of a knob makes of the messages."""
    knobs: dict[str, Any] = {}
    for each in (
        BASE.get(stage, {}),
        base_knobs,
        {knob.split(".")[0]: {knob.split(".")[1]: value}},
    ):
        for name, values in each.items():
            knobs[name] = knobs.get(name, {}) | values
    cramped = knob in ("excerpt.expected_ratio", "slide.fraction", "slide.marker")
    window = (
        7_500
        if knob == "excerpt.expected_ratio"
        else 10_000
        if cramped or stage == "summarize"
        else 100_000
    )
    outcome = compact(entries, build_policy(stage, **knobs), window=window, force=not cramped)
    return (
        outcome.status,
        outcome.edits,
        tuple(entry.seq for entry in outcome.entries),
        outcome.marker,
    )


@pytest.mark.parametrize(
    ("stage", "base_knobs", "knob", "values", "entries"),
    EFFECTS,
    ids=[effect[2] for effect in EFFECTS],
)
def test_a_knob_makes_a_difference(
    stage: str,
    base_knobs: dict[str, Any],
    knob: str,
    values: tuple[Any, Any],
    entries: tuple[TranscriptEntry, ...],
) -> None:
    one, other = (run_stage(stage, base_knobs, knob, value, entries) for value in values)
    assert one != other


def test_none_is_left_out() -> None:
    groups = (
        ONECLAW.protect,
        ONECLAW.get(TailKnobs),
        ONECLAW.get(StripKnobs),
        ONECLAW.get(PruneKnobs),
        ONECLAW.get(DedupeKnobs),
        ONECLAW.get(ExcerptKnobs),
        ONECLAW.get(SlideKnobs),
    )
    names = {f"{group.prefix}.{each.name}" for group in groups for each in fields(group)}
    # A plan stands beside the summary, which no stage writes: test_every_knob.py.
    assert names - {"protect.plans"} == {effect[2] for effect in EFFECTS}
