"""Show older messages without their images, and say that there was one."""

from compaction.core.stages.base import ContextDraft, PassContext, apply_edits


def strip_images(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """The placeholder stands before the words, once (Wolffish, Step 1). Few words make no small message: its image is what weighs."""
    placeholder = pass_context.policy.strip.placeholder
    texts = {
        entry.seq: add_placeholder(entry.content, placeholder)
        for entry in draft.transcript.entries
        if entry.images and not pass_context.protection.covers(entry, include_small=False)
    }
    return apply_edits(draft, pass_context, "images_stripped", texts)


def add_placeholder(text: str, placeholder: str) -> str:
    """The words of a message whose images are gone."""
    if text.startswith(placeholder):
        return text
    return f"{placeholder}\n{text}" if text else placeholder
