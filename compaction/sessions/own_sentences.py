"""Find the sentences that a user wrote into a summary, which stay until the user changes them.

A composed summary keeps an edited text as a segment. One that is written anew each time needs them
apart: a compaction stores them with its revision, and later edits are compared with the text that
they changed.
"""

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from chatcore.models import ContextRevision
from textkit.sentences import split_sentences

PLACEMENT_KEY = "own_sentences"
MAX_EDITS = 200  # revisions since the last compaction that are looked at
MAX_CHARS = 4_000  # of all sentences together; the oldest make room

Source = ContextRevision.Source


def load_own_sentences(session_id: UUID) -> list[str]:
    """Return what the user wrote into the summary in force, in the order of the edits."""
    rows = ContextRevision.objects.filter(session=session_id).order_by("-version")
    chain: list[tuple[str, str, list[str]]] = []
    for source, summary, placement in rows.values_list("source", "summary", "placement")[
        :MAX_EDITS
    ]:
        chain.append((source, summary or "", (placement or {}).get(PLACEMENT_KEY, [])))
        if source == Source.COMPACTION:
            break
    chain.reverse()
    sentences = list(chain[0][2]) if chain else []
    for (_, earlier_summary, _), (source, summary, _) in pairwise(chain):
        sentences = [sentence for sentence in sentences if sentence in summary]
        if source == Source.EDIT:
            sentences += _list_new_sentences(summary, earlier_summary, sentences)
    while sum(map(len, sentences)) > MAX_CHARS:
        del sentences[0]
    return sentences


def restore_sentences(summary: str, sentences: Sequence[str]) -> str:
    """Return the summary with the sentences that it has not, above it."""
    missing = [sentence for sentence in sentences if sentence not in summary]
    return "\n".join((*missing, summary))


def _list_new_sentences(summary: str, earlier: str, known: Sequence[str]) -> list[str]:
    return [
        sentence.text
        for sentence in split_sentences(summary)
        if not sentence.is_heading and sentence.text not in earlier and sentence.text not in known
    ]
