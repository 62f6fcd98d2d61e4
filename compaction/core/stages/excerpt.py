"""Cut large older messages to their beginning and end."""

from collections.abc import Iterator, Sequence

from compaction.core.budget import take_share
from compaction.core.estimate import estimate_transcript
from compaction.core.groups.stages import ExcerptKnobs
from compaction.core.stages.base import ContextDraft, PassContext, apply_edits
from compaction.core.stages.strip_images import add_placeholder
from compaction.core.transcript import TranscriptEntry


def excerpt(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """As many messages as the projected savings need to come down to the target (Wolffish, Target Selection).

    Where the context is not over its threshold, which means that it was asked for by hand or the provider refused it: all of them.
    Tool calls stay as they are; what was cut before is not cut again.
    """
    knobs, texts = pass_context.policy.excerpt, {}
    excess = (
        pass_context.to_real_tokens(estimate_transcript(draft.transcript, pass_context.policy))
        - pass_context.budget.target
        if pass_context.is_over_threshold
        else None
    )
    for entry in _order_candidates(draft.transcript.entries, pass_context):
        if excess is not None and excess <= 0:
            break
        texts[entry.seq] = _build_text(entry, pass_context)
        if excess is not None:
            excess -= max(
                0, int(pass_context.to_real_tokens(entry.tokens) * (1 - knobs.expected_ratio))
            )
    return apply_edits(draft, pass_context, "excerpted", texts)


def cut_middle(text: str, knobs: ExcerptKnobs) -> str:
    """The beginning and the end of a text, in code points, and between them what is missing; the text itself where that is no shorter."""
    head, tail = _compute_sizes(text, knobs)
    omitted_chars = len(text) - head - tail
    marker = knobs.marker.format(total=len(text), omitted=omitted_chars, head=head, tail=tail)
    excerpt_text = "\n\n".join(
        part for part in (text[:head], marker, text[len(text) - tail :]) if part
    )
    return excerpt_text if len(excerpt_text) < len(text) else text


def _compute_sizes(text: str, knobs: ExcerptKnobs) -> tuple[int, int]:
    head = min(take_share(knobs.head_ratio, len(text)), knobs.head_cap)
    tail = min(take_share(knobs.tail_ratio, len(text)), knobs.tail_cap, len(text) - head)
    return head, tail


def _order_candidates(
    entries: Sequence[TranscriptEntry], pass_context: PassContext
) -> Iterator[TranscriptEntry]:
    """Tool results, the largest first; then answers and then questions, the oldest first."""
    candidates = [
        entry
        for entry in entries
        if not pass_context.protection.covers(entry) and _can_shrink(entry, pass_context)
    ]
    yield from sorted(
        (entry for entry in candidates if entry.role == "tool"),
        key=lambda entry: -len(entry.content),
    )
    for role in ("assistant", "user"):
        yield from (entry for entry in candidates if entry.role == role)


def _can_shrink(entry: TranscriptEntry, pass_context: PassContext) -> bool:
    """Whether cutting makes a message shorter; what an edit has shortened already is let be."""
    if entry.original is not None and len(entry.content) < len(entry.original):
        return False
    return len(cut_middle(entry.content, pass_context.policy.excerpt)) < len(entry.content)


def _build_text(entry: TranscriptEntry, pass_context: PassContext) -> str:
    text = cut_middle(entry.content, pass_context.policy.excerpt)
    return add_placeholder(text, pass_context.policy.strip.placeholder) if entry.images else text
