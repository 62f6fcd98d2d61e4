"""How much of attached files is sent: a share of the room that everything else leaves, and of very large files their beginning only."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from compaction.core.estimate import CHARS_PER_TOKEN
from compaction.core.groups.conduct import FilesKnobs
from compaction.core.tool_output import preview_text

FILE_READ_BUDGET_PERCENT = 0.6
MIN_TOKENS = 64  # a share below that tells nothing; the file is left out
CUT_MARKER = "\n[... {omitted:,} of the {total:,} characters of this file are left out]"
OMISSION_NOTICE = "[This file of {total:,} characters is left out: there is no room for it]"


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A text file of a request: its size in bytes as it was sent, and its text."""

    size: int
    text: str
    tokens: int  # of the text, as the policy counts


@dataclass(frozen=True, slots=True)
class FileAllowance:
    """How much of a file is sent: all of it, or so many characters; `preview`: its beginning, however much room there is."""

    max_chars: int | None = None
    is_preview: bool = False


def compute_file_budget(
    window: int, used_tokens: int, reserve_tokens: int, ratio: float = FILE_READ_BUDGET_PERCENT
) -> int:
    """Tokens that all files together may take: floor((window − used − reserve) × ratio), never below 0.

    NeuroLink, File Token Budget: calculateFileTokenBudget.
    """
    return max(
        0,
        int(
            (
                Decimal(window - used_tokens - reserve_tokens) * Decimal(str(ratio))
            ).to_integral_value(ROUND_FLOOR)
        ),
    )


def decide_allowance(size: int, budget: int | None, knobs: FilesKnobs) -> FileAllowance:
    """What is sent of one file of so many bytes, at four characters a token; no budget: as if there were room for all.

    NeuroLink, shouldTruncateFile: above 5 MB a preview of 2,000 characters; below 100 KB all of it; else what the budget allows.
    """
    if size > knobs.preview_bytes:
        return FileAllowance(knobs.preview_chars, is_preview=True)
    if budget is None or size < knobs.fast_path_bytes or size <= budget * CHARS_PER_TOKEN:
        return FileAllowance()
    return FileAllowance(budget * CHARS_PER_TOKEN)


def fit_files(files: Sequence[FileEntry], budget: int | None, knobs: FilesKnobs) -> list[str]:
    """The texts to send, together within the budget: in proportion to their sizes, small ones and previews whole while there is room.

    NeuroLink, enforceAggregateFileBudget. What a text loses is said at its end. No budget (the window is unknown): previews only.
    """
    full_tokens = [_count_full_tokens(file, knobs) for file in files]
    if budget is None:
        grants = full_tokens
    else:
        small_tokens = [
            0 if knobs.fast_path_bytes <= file.size <= knobs.preview_bytes else demand
            for file, demand in zip(files, full_tokens, strict=True)
        ]
        small_tokens = small_tokens if sum(small_tokens) <= budget else [0] * len(files)
        grants = _share_budget(full_tokens, small_tokens, budget)
    return [
        _render_text(file, demand, grant, knobs)
        for file, demand, grant in zip(files, full_tokens, grants, strict=True)
    ]


def _count_full_tokens(file: FileEntry, knobs: FilesKnobs) -> int:
    """Tokens that the file would take if there were room for all."""
    if not decide_allowance(file.size, None, knobs).is_preview:
        return file.tokens
    return min(file.tokens, _estimate_prefix(file, knobs.preview_chars))


def _share_budget(full_tokens: list[int], small_tokens: list[int], budget: int) -> list[int]:
    """Each file's tokens: `small` ones are given, the others share what is left."""
    remaining_budget, total_demand = (
        budget - sum(small_tokens),
        sum(full_tokens) - sum(small_tokens),
    )
    if total_demand <= remaining_budget:
        return full_tokens
    return [
        grant or demand * remaining_budget // total_demand
        for demand, grant in zip(full_tokens, small_tokens, strict=True)
    ]


def _render_text(file: FileEntry, demand: int, grant: int, knobs: FilesKnobs) -> str:
    total = len(file.text)
    is_whole = grant >= demand
    if is_whole and decide_allowance(file.size, None, knobs).is_preview:
        return preview_text(file.text, knobs.preview_chars)
    if is_whole:
        return file.text
    if grant < MIN_TOKENS:
        return OMISSION_NOTICE.format(total=total)
    prefix_length = min(total, total * grant // file.tokens)
    return file.text[:prefix_length] + CUT_MARKER.format(omitted=total - prefix_length, total=total)


def _estimate_prefix(file: FileEntry, chars: int) -> int:
    """Of so many characters of the file, at what its own cost on average."""
    return -(-file.tokens * chars // max(1, len(file.text)))
