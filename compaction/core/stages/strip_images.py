"""Send older messages without their images, with a text that says that there was one."""

from compaction.core.stages.base import ContextDraft, PassContext, apply_edits


def strip_images(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Replace the images of older messages by the placeholder, before the text of the message.

    A message with few characters is not spared as elsewhere: its image is what takes the tokens.
    (Wolffish, The Compaction Flow, step 1)
    """
    placeholder = pass_context.policy.strip.placeholder
    texts = {
        entry.seq: add_placeholder(entry.content, placeholder)
        for entry in draft.transcript.entries
        if entry.images and not pass_context.protection.covers(entry, include_small=False)
    }
    return apply_edits(draft, pass_context, "images_stripped", texts)


def add_placeholder(text: str, placeholder: str) -> str:
    """Return the text of a message whose images are removed, with the placeholder once."""
    if text.startswith(placeholder):
        return text
    return f"{placeholder}\n{text}" if text else placeholder
