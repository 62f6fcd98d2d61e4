"""Very long conversations are compacted and trimmed in time that grows with their length."""

import pytest

from compaction.core.budget import plan
from compaction.core.estimate import count_entry_tokens, measure
from compaction.core.pipeline import run
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.core.summary import SummaryOutcome
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry
from compaction.core.trimming import drop_oldest_to_fit
from compaction.systems.kit.pipeline import STAGES
from tests.support.stage_transcripts import compact


def test_ten_thousand_messages_are_compacted_and_trimmed() -> None:
    messages = tuple(
        TranscriptEntry(
            seq=n,
            role=("user", "assistant", "tool")[n % 3],
            content="x" * 400,
            calls=calls_of(n),
            call_id=f"c{n - 1}" if n % 3 == 2 else "",
        )
        for n in range(3, 10_003)
    )
    transcript, budget = Transcript(entries=messages), plan(ONECLAW, 200_000)
    outcome = run(
        transcript,
        ONECLAW,
        budget,
        measure(transcript, ONECLAW),
        lambda task: SummaryOutcome(text="Brief."),
    )
    trimmed_entries = drop_oldest_to_fit(
        count_entry_tokens(transcript, ONECLAW).entries, limit_tokens=170_000
    )
    assert outcome.is_applied
    assert trimmed_entries


def calls_of(n: int) -> tuple[TranscriptCall, ...]:
    return (TranscriptCall(id=f"c{n}", name="tool", arguments="{}"),) if n % 3 == 1 else ()


@pytest.mark.slow
@pytest.mark.parametrize("stage", sorted(STAGES))
def test_each_stage_gets_through_ten_thousand_messages(stage: str) -> None:
    """Anything that takes the square of their number would take minutes here.

    `measure/benchmarks` measures how long each preset takes.
    """
    policy = Policy.parse(
        {"stages": [stage], "protect": {"kind": "count", "count": 6}, "slide": {"fraction": 0.001}},
        ONECLAW,
    )
    calls = (TranscriptCall(id="c", name="read_file", arguments='{"path": "a.py"}'),)
    messages: list[TranscriptEntry] = []
    for seq in range(1, 10_001, 4):
        messages += [
            TranscriptEntry(seq=seq, role="user", content="x" * 2_000, images=1),
            TranscriptEntry(seq=seq + 1, role="assistant", calls=calls),
        ]
        messages += [
            TranscriptEntry(seq=seq + 2, role="tool", call_id="c", content="y" * 2_000),
            TranscriptEntry(seq=seq + 3, role="assistant", content="z"),
        ]
    assert compact(tuple(messages), policy, window=200_000).is_applied
