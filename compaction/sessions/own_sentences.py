"""Find the sentences that a user wrote into a summary, which stay until the user changes them.

A composed summary keeps an edited text as a segment. One that is written anew each time needs them
apart: a compaction stores them with its revision, and later edits are compared with the text that
they changed. An export and a fork, which have the newest text alone, carry them beside it.
"""

from collections.abc import Sequence
from itertools import pairwise
from uuid import UUID

from django.core.exceptions import ValidationError

from chatcore.models import ContextRevision, Session
from chatcore.sessions.sections import SessionSection
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


def store_own_sentences(session_id: UUID, sentences: Sequence[str]) -> None:
    """Store which sentences of the newest summary are the user's own; others are left out."""
    revision = ContextRevision.objects.filter(session=session_id).order_by("-version").first()
    if revision is None:
        return
    own_sentences = [text for text in sentences if text in (revision.summary or "")]
    revision.placement = {**revision.placement, PLACEMENT_KEY: own_sentences}
    revision.save(update_fields=["placement"])


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


class OwnSentenceSection(SessionSection):
    """What the user wrote into the summary in force."""

    name = "own_sentences"

    def export_items(self, session: Session) -> list[dict[str, object]]:
        return [{"text": text} for text in load_own_sentences(session.pk)]

    def import_items(self, session: Session, items: Sequence[object]) -> None:
        sentences = [item.get("text") if isinstance(item, dict) else None for item in items]
        for index, text in enumerate(sentences):
            if not isinstance(text, str) or not text:
                raise ValidationError({f"[{index}].text": "It must be as an export contains it."})
        if sentences:
            store_own_sentences(session.pk, [text for text in sentences if text])
