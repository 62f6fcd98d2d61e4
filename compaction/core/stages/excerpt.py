"""Cut large older messages to their beginning and end."""

from collections.abc import Iterator, Sequence

from compaction.core.budget import share
from compaction.core.estimate import estimated
from compaction.core.groups.stages import Excerpt
from compaction.core.stages.base import Draft, Work, show
from compaction.core.stages.strip_images import stripped
from compaction.core.transcript import Entry


def excerpt(draft: Draft, work: Work) -> Draft:
    """As many messages as the projected savings need to come down to the target (Wolffish, Target Selection).

    Where the context is not over its threshold, which means that it was asked for by hand or the provider refused it: all of them.
    Tool calls stay as they are; what was cut before is not cut again.
    """
    knobs, texts = work.policy.excerpt, {}
    excess = (
        work.size(estimated(draft.transcript, work.policy)) - work.budget.target
        if work.cramped
        else None
    )
    for entry in _candidates(draft.transcript.entries, work):
        if excess is not None and excess <= 0:
            break
        texts[entry.seq] = _shown(entry, work)
        if excess is not None:
            excess -= max(0, int(work.size(entry.tokens) * (1 - knobs.expected_ratio)))
    return show(draft, work, "excerpted", texts)


def cut(text: str, knobs: Excerpt) -> str:
    """The beginning and the end of a text, in code points, and between them what is missing; the text itself where that is no shorter."""
    head, tail = _sizes(text, knobs)
    omitted = len(text) - head - tail
    marker = knobs.marker.format(total=len(text), omitted=omitted, head=head, tail=tail)
    short = "\n\n".join(part for part in (text[:head], marker, text[len(text) - tail :]) if part)
    return short if len(short) < len(text) else text


def _sizes(text: str, knobs: Excerpt) -> tuple[int, int]:
    head = min(share(knobs.head_ratio, len(text)), knobs.head_cap)
    tail = min(share(knobs.tail_ratio, len(text)), knobs.tail_cap, len(text) - head)
    return head, tail


def _candidates(entries: Sequence[Entry], work: Work) -> Iterator[Entry]:
    """Tool results, the largest first; then answers and then questions, the oldest first."""
    free = [
        entry
        for entry in entries
        if not work.protection.covers(entry) and _has_a_middle(entry, work)
    ]
    yield from sorted(
        (entry for entry in free if entry.role == "tool"), key=lambda entry: -len(entry.content)
    )
    for role in ("assistant", "user"):
        yield from (entry for entry in free if entry.role == role)


def _has_a_middle(entry: Entry, work: Work) -> bool:
    """Whether cutting makes a message shorter; what an edit has shortened already is let be."""
    if entry.original is not None and len(entry.content) < len(entry.original):
        return False
    return len(cut(entry.content, work.policy.excerpt)) < len(entry.content)


def _shown(entry: Entry, work: Work) -> str:
    text = cut(entry.content, work.policy.excerpt)
    return stripped(text, work.policy.strip.placeholder) if entry.images else text
