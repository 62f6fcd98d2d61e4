"""Cut large older messages to their beginning and their end.

For example, under `wolffish` a tool result of 100,000 characters keeps the first 6,000 (15 % would
be 15,000, but the cap is 6,000) and the last 3,000, with a marker between them.
"""

from collections.abc import Sequence

from compaction.core.budget import take_share
from compaction.core.groups.stages import ExcerptKnobs
from compaction.core.stages.base import ContextDraft, PassContext, apply_edits
from compaction.core.stages.strip_images import add_placeholder
from compaction.core.transcript import TranscriptEntry


def excerpt(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Cut as many messages as are expected to bring the context down to the target.

    A context that is not over its threshold comes here only by hand or because the provider refused
    it; then all of them are cut. Tool calls stay as they are. What was cut before is not cut again.
    (Wolffish, Target Selection)
    """
    candidates = _order_candidates(draft.transcript.entries, pass_context)
    if pass_context.limits.is_over_threshold:
        excess = pass_context.measure_tokens(draft.transcript) - pass_context.budget.target
        candidates = _take_until_saved(candidates, excess, pass_context)
    texts = {entry.seq: _build_text(entry, pass_context) for entry in candidates}
    return apply_edits(draft, pass_context, "excerpted", texts)


def cut_middle(text: str, knobs: ExcerptKnobs) -> str:
    """Return the beginning and the end of a text, with a marker between them that counts the rest.

    Returns the text itself if that is not longer. Sizes are in code points.
    """
    head, tail = _compute_sizes(text, knobs)
    omitted_chars = len(text) - head - tail
    marker = knobs.marker.format(total=len(text), omitted=omitted_chars, head=head, tail=tail)
    parts = (text[:head], marker, text[len(text) - tail :])
    excerpt_text = "\n\n".join(part for part in parts if part)
    return excerpt_text if len(excerpt_text) < len(text) else text


def _compute_sizes(text: str, knobs: ExcerptKnobs) -> tuple[int, int]:
    head = min(take_share(knobs.head_ratio, len(text)), knobs.head_cap)
    tail = min(take_share(knobs.tail_ratio, len(text)), knobs.tail_cap, len(text) - head)
    return head, tail


def _order_candidates(
    entries: Sequence[TranscriptEntry], pass_context: PassContext
) -> list[TranscriptEntry]:
    """Return the messages that may be cut, in the order in which they are.

    Tool results come first, the largest before the others; then answers and then questions, the
    oldest before the others.
    """
    candidates = [
        entry
        for entry in entries
        if not pass_context.protection.covers(entry) and _can_shrink(entry, pass_context)
    ]
    results = [entry for entry in candidates if entry.role == "tool"]
    return [
        *sorted(results, key=lambda entry: -len(entry.content)),
        *(entry for entry in candidates if entry.role == "assistant"),
        *(entry for entry in candidates if entry.role == "user"),
    ]


def _take_until_saved(
    candidates: Sequence[TranscriptEntry], excess: int, pass_context: PassContext
) -> list[TranscriptEntry]:
    """Return the first candidates whose expected savings cover the excess, given in real tokens."""
    savings_ratio = 1 - pass_context.policy.excerpt.expected_ratio
    selection: list[TranscriptEntry] = []
    for entry in candidates:
        if excess <= 0:
            break
        selection.append(entry)
        excess -= max(0, int(pass_context.to_real_tokens(entry.tokens) * savings_ratio))
    return selection


def _can_shrink(entry: TranscriptEntry, pass_context: PassContext) -> bool:
    """Return whether a cut makes a message shorter that no edit has shortened before."""
    if entry.original is not None and len(entry.content) < len(entry.original):
        return False
    return len(cut_middle(entry.content, pass_context.policy.excerpt)) < len(entry.content)


def _build_text(entry: TranscriptEntry, pass_context: PassContext) -> str:
    text = cut_middle(entry.content, pass_context.policy.excerpt)
    return add_placeholder(text, pass_context.policy.strip.placeholder) if entry.images else text
