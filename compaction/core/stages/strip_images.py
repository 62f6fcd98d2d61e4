"""Show older messages without their images, and say that there was one."""

from compaction.core.stages.base import Draft, Work, show


def strip_images(draft: Draft, work: Work) -> Draft:
    """The placeholder stands before the words, once (Wolffish, Step 1). Few words make no small message: its image is what weighs."""
    placeholder = work.policy.strip.placeholder
    texts = {
        entry.seq: stripped(entry.content, placeholder)
        for entry in draft.transcript.entries
        if entry.images and not work.protection.covers(entry, small=False)
    }
    return show(draft, work, "images_stripped", texts)


def stripped(words: str, placeholder: str) -> str:
    """The words of a message whose images are gone."""
    if words.startswith(placeholder):
        return words
    return f"{placeholder}\n{words}" if words else placeholder
