"""The invariants: each finds one fault of an outcome, and names it in a sentence."""

from dataclasses import replace
from typing import Any

import pytest

from compaction.core.invariants import find_violations
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEdit, TranscriptEntry

ENTRIES = (
    TranscriptEntry(seq=1, role="user", content="one", tokens=5),
    TranscriptEntry(seq=2, role="assistant", calls=(TranscriptCall(id="a", name="t"),), tokens=5),
    TranscriptEntry(seq=3, role="tool", call_id="a", tokens=5),
    TranscriptEntry(seq=4, role="user", content="two", tokens=5),
    TranscriptEntry(seq=5, role="assistant", content="three", tokens=5),
)
BEFORE = Transcript(entries=ENTRIES)
GOOD = Outcome(
    status="applied",
    summary="s",
    boundary_seq=4,
    entries=ENTRIES[3:],
    messages_compacted=3,
    tokens_before=25,
    tokens_after=11,
)


def test_a_good_outcome_breaks_none() -> None:
    assert find_violations(BEFORE, GOOD) == []
    assert find_violations(BEFORE, Outcome(status="skipped", reason="Nothing to do.")) == []


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"summary": None}, "summary is empty"),
        ({"summary": " \n"}, "summary is empty"),
        ({"boundary_seq": 9}, "not a message of the transcript"),
        ({"boundary_seq": 3, "entries": ENTRIES[2:]}, "tool result"),
        ({"boundary_seq": 3, "entries": ENTRIES[2:]}, "separated"),
        ({"boundary_seq": 1, "entries": ENTRIES}, "did not move forward"),
        ({"entries": ENTRIES[4:]}, "not all kept"),
        ({"entries": ENTRIES[:3]}, "not all kept"),
        ({"entries": (ENTRIES[3], ENTRIES[3], ENTRIES[4])}, "not all kept"),
        ({"entries": (ENTRIES[4], ENTRIES[3])}, "not all kept"),
        (
            {"entries": (ENTRIES[3], replace(ENTRIES[4], content="changed"))},
            "not the originals: [5]",
        ),
        ({"entries": (ENTRIES[3], replace(ENTRIES[4], tokens=6))}, "not the originals: [5]"),
        (
            {"edits": (TranscriptEdit(seq=5, kind="pruned"),), "protected_seqs": frozenset({5})},
            "Protected messages are edited: [5]",
        ),
        ({"edits": (TranscriptEdit(seq=5, kind="pruned"),)}, "not the originals: [5]"),
        ({"edits": (TranscriptEdit(seq=1, kind="pruned"),)}, "not of one kept message each: [1]"),
        ({"tokens_after": 25}, "not smaller: 25 tokens before, 25 after"),
    ],
)
def test_each_broken_invariant_is_named(change: dict[str, Any], complaint: str) -> None:
    assert any(complaint in each for each in find_violations(BEFORE, replace(GOOD, **change)))


def test_a_pinned_message_that_is_gone_is_named() -> None:
    entries = (replace(ENTRIES[0], pinned=True), *ENTRIES[1:])
    transcript = Transcript(entries=entries)
    assert find_violations(transcript, GOOD) == ["Pinned messages are gone: [1]."]
    outcome = replace(GOOD, entries=(entries[0], *entries[3:]), exempt_seqs=(1,))
    assert find_violations(transcript, outcome) == []


@pytest.mark.parametrize(
    "change",
    [{"summary": "new"}, {"boundary_seq": 4}, {"edits": (TranscriptEdit(seq=1, kind="pruned"),)}],
)
def test_an_outcome_that_is_not_applied_changes_nothing(change: dict[str, Any]) -> None:
    assert find_violations(BEFORE, Outcome(status="failed", **change)) == [
        "A failed outcome changes the context."
    ]


def test_an_entry_counted_on_the_way_is_still_the_original() -> None:
    uncounted_transcript = Transcript(entries=tuple(replace(entry, tokens=0) for entry in ENTRIES))
    assert find_violations(uncounted_transcript, GOOD) == []
