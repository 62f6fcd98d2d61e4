"""Random conversations with parallel, interleaved, repeated and pending calls."""

from dataclasses import replace

from hypothesis import strategies as st

from compaction.core.estimate import LastUsage
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.transcript import Transcript, TranscriptCall, TranscriptEntry

IDS = st.sampled_from(["call_0", "call_1", "call_2", "toolu_9"])
SIZES = st.integers(0, 3_000)
RICH_SIZES = st.sampled_from([0, 1, 200, 600, 2_500, 9_000])
ARGUMENTS = st.sampled_from(
    ["{}", '{"path": "a.py"}', '{"path": "./a.py"}', '{"path": "b.py", "offset": 3}', "{"]
)
# The presets, with numbers that small conversations reach.
POLICIES = [
    Policy.parse({"prune": {"protect_tokens": 500, "minimum_savings": 300}}, each)
    for each in PRESETS.values()
]
USAGES = st.none() | st.builds(
    LastUsage, tokens=st.integers(1, 20_000), after_seq=st.integers(0, 100)
)


@st.composite
def entries(draw: st.DrawFn, *, rich: bool = False) -> tuple[TranscriptEntry, ...]:
    """Messages in any order in which a faulty program may store them; seqs rise, with gaps.

    `rich` adds images, errors, file reads and skills.
    """
    messages: list[TranscriptEntry] = []
    seq = 0
    for role in draw(
        st.lists(st.sampled_from(["user", "assistant", "assistant", "tool", "tool"]), max_size=40)
    ):
        seq += draw(st.integers(1, 3))
        calls = draw(st.lists(IDS, unique=True, max_size=3)) if role == "assistant" else []
        entry = TranscriptEntry(
            seq=seq,
            role=role,
            content="x" * draw(RICH_SIZES if rich else SIZES),
            calls=tuple(
                TranscriptCall(
                    id=each, name="read_file" if rich else "tool", arguments=draw(ARGUMENTS)
                )
                for each in calls
            ),
            call_id=draw(IDS) if role == "tool" else "",
            pinned=draw(st.integers(0, 9)) == 0,
        )
        messages.append(draw(enriched_entries(entry)) if rich else entry)
    return tuple(messages)


@st.composite
def enriched_entries(draw: st.DrawFn, entry: TranscriptEntry) -> TranscriptEntry:
    """The message with images, an error or an edit."""
    if entry.role == "tool":
        entry = replace(
            entry,
            tool_name=draw(st.sampled_from(["read_file", "skill"])),
            is_error=draw(st.integers(0, 4)) == 0,
        )
    is_edited = draw(st.integers(0, 6)) == 0
    return replace(
        entry,
        images=0 if is_edited else draw(st.sampled_from([0, 0, 0, 1, 2])),
        original="y" * 5_000 if is_edited else None,
    )


@st.composite
def transcripts(draw: st.DrawFn) -> Transcript:
    summary = draw(st.none() | st.integers(1, 9_000).map("s".__mul__))
    return Transcript(
        entries=draw(entries()), summary=summary, overhead_tokens=draw(st.integers(0, 2_000))
    )
