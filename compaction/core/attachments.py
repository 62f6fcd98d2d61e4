"""How much of attached files is sent: a share of the room that everything else leaves.

For example, 20,000 tokens of the window are free and `budget_ratio` is 0.6: all files together take
at most 12,000. Two files of 15,000 and 5,000 tokens get 9,000 and 3,000 of them, or with `sharing`
`even` 7,000 and 5,000.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from compaction.core.budget import share_evenly, take_share
from compaction.core.knobs import FilesKnobs

FILE_READ_BUDGET_PERCENT = 0.6
# Around the text of a file in a message.
FENCE_END = "</attached_file>"
FENCE = re.compile(rf'<attached_file name="[^"\n]*">|{FENCE_END}')
MIN_TOKENS = 64  # a file with a smaller share is left out: so little of it is of no use
CUT_MARKER = "\n[... {omitted:,} of the {total:,} characters of this file are left out]"
OMISSION_NOTICE = "[This file of {total:,} characters is left out: there is no room for it]"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A text file of a request."""

    size: int
    """Bytes of the file as it was uploaded."""
    text: str
    tokens: int
    """Tokens of the text, as the policy counts."""


def compute_file_budget(
    window: int, used_tokens: int, reserve_tokens: int, ratio: float = FILE_READ_BUDGET_PERCENT
) -> int:
    """Return the tokens that all files together may take.

    That is floor((window - used - reserve) * ratio), not below 0.
    """
    return max(0, take_share(ratio, window - used_tokens - reserve_tokens))


def fit_files(files: Sequence[FileEntry], budget: int | None, knobs: FilesKnobs) -> list[str]:
    """Return the texts to send, together within the budget in tokens.

    Small files and previews are sent whole if there is room for all of them; the others share the
    rest as the policy says. A text that is cut says so at its end. If the budget is None
    because the window is unknown, only very large files are cut, to previews.
    """
    full_tokens = [_count_full_tokens(file, knobs) for file in files]
    if budget is None:
        grants = full_tokens
    elif knobs.sharing == "even":
        grants = share_evenly(full_tokens, budget)
    else:
        small_tokens = [
            0 if knobs.fast_path_bytes <= file.size <= knobs.preview_bytes else demand
            for file, demand in zip(files, full_tokens, strict=True)
        ]
        if sum(small_tokens) > budget:  # no room for all small files: those that a share would
            small_tokens = [  # leave out come whole, and every other file takes its share
                demand if demand <= MIN_TOKENS else 0 for demand in full_tokens
            ]
        if sum(small_tokens) > budget:
            small_tokens = [0] * len(files)
        grants = _share_budget(full_tokens, small_tokens, budget)
    return [
        _render_text(file, demand, grant, knobs)
        for file, demand, grant in zip(files, full_tokens, grants, strict=True)
    ]


def render_prefix(text: str, chars: int) -> str:
    """Return the beginning of a text, with a note of how much is left out; 0 leaves out all."""
    total = len(text)
    if not chars:
        return OMISSION_NOTICE.format(total=total)
    return text[:chars] + CUT_MARKER.format(omitted=total - chars, total=total)


def preview_text(text: str, limit: int = 2_000) -> str:
    """Return the first characters, between the full length and the omitted length."""
    omitted_chars = len(text) - limit
    if omitted_chars <= 0:
        return f"({len(text):,} chars) {text}"
    return f"({len(text):,} chars) {text[:limit]}... [{omitted_chars:,} chars omitted]"


def _count_full_tokens(file: FileEntry, knobs: FilesKnobs) -> int:
    """Return the tokens that the file would take if there were room for everything."""
    if file.size <= knobs.preview_bytes:
        return file.tokens
    return min(file.tokens, _estimate_prefix(file, knobs.preview_chars))


def _share_budget(full_tokens: list[int], small_tokens: list[int], budget: int) -> list[int]:
    """Return the tokens of each file: small files get all of theirs, the others share the rest."""
    remaining_budget = budget - sum(small_tokens)
    total_demand = sum(full_tokens) - sum(small_tokens)
    if total_demand <= remaining_budget:
        return full_tokens
    return [
        grant or demand * remaining_budget // total_demand
        for demand, grant in zip(full_tokens, small_tokens, strict=True)
    ]


def _render_text(file: FileEntry, demand: int, grant: int, knobs: FilesKnobs) -> str:
    total = len(file.text)
    if grant >= demand:
        is_preview = file.size > knobs.preview_bytes
        return preview_text(file.text, knobs.preview_chars) if is_preview else file.text
    if grant < MIN_TOKENS:
        return OMISSION_NOTICE.format(total=total)
    return render_prefix(file.text, min(total, total * grant // file.tokens))


def _estimate_prefix(file: FileEntry, chars: int) -> int:
    """Return the tokens of the first characters, at the average of the whole text, rounded up."""
    return -(-file.tokens * chars // max(1, len(file.text)))
