"""Find what a summary leaves out: rules and exact values of its messages that nothing sent says.

The lines are those of the ledger's table, which are recognized without a model; a policy without a
ledger has them read for this. They go with their messages, so nothing here outlives a deletion.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core.transcript import Transcript
from compaction.memory.core.ledger.lines import normalize_text
from compaction.memory.core.verify.completion import SummaryText
from compaction.memory.ledger import recorder, store
from compaction.memory.models import LedgerLine
from compaction.sessions.background import render_stored_background
from compaction.sessions.session_context import SessionContext
from compaction.sessions.transcripts import load_transcript

MAX_READ = 1_000  # messages that one search reads at most; the next one goes on
MAX_LINES = 20  # that are reported, the most binding ones first
MAX_RULE_WORDS = 40  # a longer sentence is rather a story, although it has "always" in it
_ORDER = [str(kind) for kind in LedgerLine.Kind]


@dataclass(frozen=True, kw_only=True)
class MissingLines:
    """What is not in the summary. `count` is how many lines there are, reported or not.

    `is_complete` is False while summarized messages are still to be read.
    """

    lines: Sequence[LedgerLine] = ()
    count: int = 0
    is_complete: bool = True


def find_missing_lines(context: SessionContext) -> MissingLines:
    """Return the lines of summarized messages that nothing sent says: each text once.

    What is sent is the summary, all beside it, and the messages that are sent as they are.
    """
    boundary_seq = context.facts.live.boundary_seq or 0
    if not boundary_seq or not context.facts.summary:
        return MissingLines()
    read_seq = recorder.read_up_to(context, last_seq=boundary_seq - 1, limit=MAX_READ)
    transcript = load_transcript(context.facts)
    sent_seqs = {entry.seq for entry in transcript.entries}
    text = SummaryText(_join_sent_texts(context, transcript))
    said_texts = normalize_text(" ".join(entry.content for entry in transcript.entries))
    rows = store.select_distinct_lines(context.facts.session_id).filter(
        status=LedgerLine.Status.CURRENT, seq__lt=boundary_seq
    )
    rows = rows.exclude(holds=LedgerLine.Holds.ANSWER)
    missing_by_text: dict[str, LedgerLine] = {}
    for row in rows.order_by("seq", "id"):
        words = normalize_text(row.text)
        is_sent = row.seq in sent_seqs or words in said_texts or text.says(store.to_core_line(row))
        if not is_sent and not _tells_a_story(row):
            missing_by_text.setdefault(words, row)
    missing_lines = list(missing_by_text.values())
    missing_lines.sort(key=lambda row: (not row.pinned, _ORDER.index(row.kind)))
    return MissingLines(
        lines=missing_lines[:MAX_LINES],
        count=len(missing_lines),
        is_complete=read_seq >= boundary_seq - 1,
    )


def _tells_a_story(row: LedgerLine) -> bool:
    is_rule = row.kind in (LedgerLine.Kind.RULE, LedgerLine.Kind.PREFERENCE)
    return is_rule and not row.pinned and len(row.text.split()) > MAX_RULE_WORDS


def _join_sent_texts(context: SessionContext, transcript: Transcript) -> str:
    """Return the summary, and what stands beside it."""
    reference_text = render_stored_background(context)
    return f"{transcript.system}\n\n{transcript.summary}\n\n{reference_text}"
