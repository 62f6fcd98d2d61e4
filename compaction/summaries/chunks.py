"""Divide a transcript into the texts of single calls."""

from collections import deque


def take_chunk(pending_lines: deque[str], room: int) -> str:
    """Take the next messages that fit into `room` characters together off the pending lines.

    A message that is too long is divided where the chunk would otherwise be less than half full.
    """
    pieces: list[str] = []
    free_chars = room
    while pending_lines and free_chars > 0:
        piece = pending_lines.popleft()
        if len(piece) > free_chars:
            if free_chars < room / 2:
                pending_lines.appendleft(piece)
                break
            pending_lines.appendleft(piece[free_chars:])
            piece = piece[:free_chars]
        pieces.append(piece)
        free_chars -= len(piece) + 2
    return "\n\n".join(pieces)
