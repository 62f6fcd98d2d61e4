"""Divide a transcript into the texts of single calls, and estimate how dense a text is."""

from collections import deque
from collections.abc import Sequence

from compaction.core.counting import estimate_by_features

SAMPLE_COUNT = 16
SAMPLE_CHARS = 512


def take_chunk(pending_lines: deque[str], space: int) -> str:
    """Take the next messages that fit into `space` characters together off the pending lines.

    A message that is too long is divided where the chunk would otherwise be less than half full.
    """
    pieces: list[str] = []
    free_chars = space
    while pending_lines and free_chars > 0:
        piece = pending_lines.popleft()
        if len(piece) > free_chars:
            if free_chars < space / 2:
                pending_lines.appendleft(piece)
                break
            pending_lines.appendleft(piece[free_chars:])
            piece = piece[:free_chars]
        pieces.append(piece)
        free_chars -= len(piece) + 2
    return "\n\n".join(pieces)


def estimate_density(lines: Sequence[str]) -> float:
    """Return the estimated tokens a character, from samples spread over the text; 0 for no text."""
    step = max(1, len(lines) // SAMPLE_COUNT)
    sample = "".join(line[:SAMPLE_CHARS] for line in lines[::step])
    return estimate_by_features(sample) / len(sample) if sample else 0
