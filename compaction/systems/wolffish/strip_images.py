"""Send tool results and older messages without their images, with a text in their place."""

from compaction.core.transcript import TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext, apply_edits
from compaction.systems.kit.pipeline import add_stage
from compaction.systems.wolffish.settings import StripKnobs


def strip_images(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Replace images by a placeholder, before the text of the message.

    Those of tool results go wherever they stand, unless they are pinned; those of other messages
    only where these are not protected. A message with few characters is not spared as elsewhere:
    its image is what takes the tokens. (Wolffish, The Compaction Flow, step 1)
    """
    knobs = context.policy.get(StripKnobs)
    texts = {
        entry.seq: add_placeholder(entry, entry.content, knobs)
        for entry in draft.transcript.entries
        if entry.images and _may_lose_images(entry, context)
    }
    return apply_edits(draft, context, "images_stripped", texts)


def add_placeholder(entry: TranscriptEntry, text: str, knobs: StripKnobs) -> str:
    """Return a text of a message whose images are removed, with the placeholder once."""
    placeholder = knobs.placeholder if entry.role == "tool" else knobs.other_placeholder
    if not placeholder or text.startswith(placeholder):
        return text
    return f"{placeholder}\n{text}" if text else placeholder


def _may_lose_images(entry: TranscriptEntry, context: StageContext) -> bool:
    if entry.role != "tool":
        return not context.protection.covers(entry, include_small=False)
    up_to_seq = context.protection.up_to_seq
    return not entry.pinned and (up_to_seq is None or entry.seq <= up_to_seq)


add_stage("strip_images", strip_images)
