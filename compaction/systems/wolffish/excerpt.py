"""Cut large older messages to their beginning and their end.

For example, under `wolffish` a tool result of 100,000 characters keeps the first 6,000 (15 % would
be 15,000, but the cap is 6,000) and the last 3,000, with a marker between them.
"""

from collections.abc import Iterator, Sequence
from itertools import chain

from compaction.core.attachments import FENCE, FENCE_END
from compaction.core.budget import take_share
from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext, apply_edits
from compaction.systems.kit.pipeline import add_stage
from compaction.systems.wolffish.settings import ExcerptKnobs, StripKnobs
from compaction.systems.wolffish.strip_images import add_placeholder


def excerpt(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Cut as many messages as are expected to bring the context down to the target.

    A context that is not over its threshold comes here only by hand or because the provider refused
    it; then all of them are cut. Tool calls stay as they are. What was cut before is not cut again.
    (Wolffish, Target Selection)
    """
    excerpts = _iterate_excerpts(draft.transcript.entries, context)
    if context.limits.is_over_threshold:
        excess = context.measure_tokens(draft.transcript) - context.budget.target
        excerpts = _take_until_saved(excerpts, excess, context)
    texts = {entry.seq: text for entry, text in excerpts}
    return apply_edits(draft, context, "excerpted", texts)


def cut_middle(text: str, knobs: ExcerptKnobs) -> str:
    """Return the beginning and the end of a text, with a marker between them that counts the rest.

    Returns the text itself if that is not longer. Sizes are in code points.
    """
    head, tail = _keep_fences(text, *_compute_sizes(text, knobs))
    omitted_chars = len(text) - head - tail
    marker = knobs.marker.format(total=len(text), omitted=omitted_chars, head=head, tail=tail)
    opened = _find_open_fence(text, head)
    reopened = _find_open_fence(text, len(text) - tail)
    if opened != reopened:  # what is left out begins or ends within another file
        marker = "\n".join(part for part in (opened and FENCE_END, marker, reopened) if part)
    parts = (text[:head], marker, text[len(text) - tail :])
    excerpt_text = "\n\n".join(part for part in parts if part)
    return excerpt_text if len(excerpt_text) < len(text) else text


def _compute_sizes(text: str, knobs: ExcerptKnobs) -> tuple[int, int]:
    head = min(take_share(knobs.head_ratio, len(text)), knobs.head_cap)
    tail = min(take_share(knobs.tail_ratio, len(text)), knobs.tail_cap, len(text) - head)
    return head, tail


def _keep_fences(text: str, head: int, tail: int) -> tuple[int, int]:
    """Return the sizes with which no fence of a file is cut through."""
    start = len(text) - tail
    for fence in FENCE.finditer(text):
        if fence.start() < head < fence.end():
            head = fence.start()
        if fence.start() < start < fence.end():
            start = fence.end()
    return head, len(text) - start


def _find_open_fence(text: str, position: int) -> str:
    """Return the fence of the file that a place of a text is in; empty if it is in none."""
    fences = [fence[0] for fence in FENCE.finditer(text, 0, position)]
    return fences[-1] if fences and fences[-1] != FENCE_END else ""


def _iterate_excerpts(
    entries: Sequence[TranscriptEntry], context: StageContext
) -> Iterator[tuple[TranscriptEntry, str]]:
    """Yield the messages that may be cut with their excerpts, in the order in which they are cut.

    Tool results come first, the largest before the others; then answers and then questions, the
    oldest before the others.
    """
    results = [entry for entry in entries if entry.role == "tool"]
    candidates = chain(
        sorted(results, key=lambda entry: len(entry.content), reverse=True),
        (entry for entry in entries if entry.role == "assistant"),
        (entry for entry in entries if entry.role == "user"),
    )
    for entry in candidates:
        if context.protection.covers(entry):
            continue
        text = _cut_entry(entry, context)
        if text is not None:
            yield entry, text


def _take_until_saved(
    excerpts: Iterator[tuple[TranscriptEntry, str]], excess: int, context: StageContext
) -> Iterator[tuple[TranscriptEntry, str]]:
    """Yield the first excerpts whose expected savings cover the excess, given in real tokens."""
    savings_ratio = 1 - context.policy.get(ExcerptKnobs).expected_ratio
    while excess > 0 and (candidate := next(excerpts, None)):
        yield candidate
        entry_tokens = context.to_real_tokens(candidate[0].tokens)
        excess -= max(0, int(entry_tokens * savings_ratio))


def _cut_entry(entry: TranscriptEntry, context: StageContext) -> str | None:
    """Return the excerpt of a message.

    Returns None if a cut makes the text no shorter, or if an edit has shortened it before.
    """
    if entry.original is not None and len(entry.content) < len(entry.original):
        return None
    text = cut_middle(entry.content, context.policy.get(ExcerptKnobs))
    if len(text) >= len(entry.content):
        return None
    return add_placeholder(entry, text, context.policy.get(StripKnobs)) if entry.images else text


add_stage("excerpt", excerpt)
