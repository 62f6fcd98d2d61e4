"""Measure what needs no database: cutting a tool result and compacting 10,000 messages."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from chatcore.models import Message
from compaction.core.budget import plan
from compaction.core.estimate import measure
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.summary import SummaryOutcome
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit
from measure.benchmarks.timing import Row, measure_median
from textkit.token_features import estimate_by_features

MEGABYTE = 1_000_000
MESSAGES = 10_000


def measure_rows() -> Iterator[Row]:
    """Measure storing and counting 1 MB, and compacting and trimming 10,000 messages."""
    for name, text in (("ASCII", "x" * MEGABYTE), ("Chinese", "字" * (MEGABYTE // 3))):
        yield Row(
            name=f"cut a tool result of 1 MB, {name}",
            value=measure_median(partial(_store, text), times=50),
            limit=10,
        )
    code = Path(__file__).read_text()
    counting = measure_median(
        partial(estimate_by_features, (code * (MEGABYTE // len(code) + 1))[:MEGABYTE]), times=5
    )
    yield Row(name="count a text of 1 MB by features", value=counting, limit=1_000)
    transcript = _build_transcript()
    unmeasured = replace(
        transcript, entries=tuple(replace(entry, tokens=0) for entry in transcript.entries)
    )
    for name, policy in PRESETS.items():
        compaction = measure_median(partial(_compact, policy, unmeasured), times=5, warm_up=1)
        yield Row(
            name=f"compact {MESSAGES:,} messages, {name}",
            value=compaction,
            limit=1_000,
            note="counted first; instant summarizer",
        )
    trimming = measure_median(
        lambda: drop_oldest_to_fit(transcript.entries, limit_tokens=170_000), times=9
    )
    yield Row(name=f"trim {MESSAGES:,} messages", value=trimming, limit=1_000)


def _store(text: str) -> None:
    Message(role="tool", content=text).prepare_to_store()


def _compact(policy: Policy, transcript: Transcript) -> None:
    """Compact in a window of half the transcript's size, so that every stage has work."""
    measurement = measure(transcript, policy)
    run(
        transcript,
        policy,
        plan(policy, measurement.tokens // 2),
        measurement,
        lambda task: SummaryOutcome(text="Brief."),
    )


def _build_transcript() -> Transcript:
    """Build turns of four: a question, two parallel calls, and their results in reverse order."""
    entries = []
    for seq in range(1, MESSAGES, 4):
        calls = tuple(
            TranscriptCall(id=f"call_{place}", name="read", arguments='{"path": "a"}')
            for place in range(2)
        )
        entries.append(TranscriptEntry(seq=seq, role="user", content="x" * 400, tokens=100))
        entries.append(
            TranscriptEntry(
                seq=seq + 1, role="assistant", content="x" * 400, tokens=107, calls=calls
            )
        )
        entries += [
            TranscriptEntry(
                seq=seq + 2 + n, role="tool", content="x" * 400, tokens=100, call_id=f"call_{1 - n}"
            )
            for n in range(2)
        ]
    return Transcript(entries=tuple(entries), summary="Before that. " * 100, overhead_tokens=500)
