"""How much of attached files is sent: a share of the room that everything else leaves, and of very large files their beginning only."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Decimal

from compaction.core.groups.conduct import Files
from compaction.core.tool_output import CHARS_PER_TOKEN, preview

FILE_READ_BUDGET_PERCENT = 0.6
MIN_TOKENS = 64  # a share below that tells nothing; the file is left out
CUT = "\n[... {omitted:,} of the {total:,} characters of this file are left out]"
LEFT_OUT = "[This file of {total:,} characters is left out: there is no room for it]"


@dataclass(frozen=True, slots=True)
class File:
    """A text file of a request: its size in bytes as it was sent, and its text."""

    size: int
    text: str
    tokens: int  # of the text, as the policy counts


@dataclass(frozen=True, slots=True)
class Shown:
    """How much of a file is sent: all of it, or so many characters; `preview`: its beginning, however much room there is."""

    max_chars: int | None = None
    preview: bool = False


def file_token_budget(
    window: int, used: int, reserve: int, ratio: float = FILE_READ_BUDGET_PERCENT
) -> int:
    """Tokens that all files together may take: floor((window − used − reserve) × ratio), never below 0.

    NeuroLink, File Token Budget: calculateFileTokenBudget.
    """
    return max(
        0,
        int(
            (Decimal(window - used - reserve) * Decimal(str(ratio))).to_integral_value(ROUND_FLOOR)
        ),
    )


def should_truncate(size: int, budget: int | None, knobs: Files) -> Shown:
    """What is sent of one file of so many bytes, at four characters a token; no budget: as if there were room for all.

    NeuroLink, shouldTruncateFile: above 5 MB a preview of 2,000 characters; below 100 KB all of it; else what the budget allows.
    """
    if size > knobs.preview_bytes:
        return Shown(knobs.preview_chars, preview=True)
    if budget is None or size < knobs.fast_path_bytes or size <= budget * CHARS_PER_TOKEN:
        return Shown()
    return Shown(budget * CHARS_PER_TOKEN)


def fitted(files: Sequence[File], budget: int | None, knobs: Files) -> list[str]:
    """The texts to send, together within the budget: in proportion to their sizes, small ones and previews whole while there is room.

    NeuroLink, enforceAggregateFileBudget. What a text loses is said at its end. No budget (the window is unknown): previews only.
    """
    wanted = [_wanted(file, knobs) for file in files]
    if budget is None:
        granted = wanted
    else:
        small = [
            0 if knobs.fast_path_bytes <= file.size <= knobs.preview_bytes else want
            for file, want in zip(files, wanted, strict=True)
        ]
        small = small if sum(small) <= budget else [0] * len(files)
        granted = _shared(wanted, small, budget)
    return [
        _text(file, want, grant, knobs)
        for file, want, grant in zip(files, wanted, granted, strict=True)
    ]


def _wanted(file: File, knobs: Files) -> int:
    """Tokens that the file would take if there were room for all."""
    if not should_truncate(file.size, None, knobs).preview:
        return file.tokens
    return min(file.tokens, _tokens(file, knobs.preview_chars))


def _shared(wanted: list[int], small: list[int], budget: int) -> list[int]:
    """Each file's tokens: `small` ones are given, the others share what is left."""
    left, asked = budget - sum(small), sum(wanted) - sum(small)
    if asked <= left:
        return wanted
    return [given or want * left // asked for want, given in zip(wanted, small, strict=True)]


def _text(file: File, want: int, grant: int, knobs: Files) -> str:
    total = len(file.text)
    whole = grant >= want
    if whole and should_truncate(file.size, None, knobs).preview:
        return preview(file.text, knobs.preview_chars)
    if whole:
        return file.text
    if grant < MIN_TOKENS:
        return LEFT_OUT.format(total=total)
    kept = min(total, total * grant // file.tokens)
    return file.text[:kept] + CUT.format(omitted=total - kept, total=total)


def _tokens(file: File, chars: int) -> int:
    """Of so many characters of the file, at what its own cost on average."""
    return -(-file.tokens * chars // max(1, len(file.text)))
