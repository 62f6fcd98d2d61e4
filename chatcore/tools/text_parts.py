"""Render a part of a long text for the model, after a line that says where in the text it is."""

import re

PASSAGE_CHARS = 160  # on each side of a text that was searched for
# Of each tool that reads a text: where it begins, and what it searches for.
PLACE_PARAMETERS: dict[str, dict[str, object]] = {
    "offset": {
        "type": "integer",
        "description": "First character.",
        "default": 0,
        "minimum": 0,
        "maximum": 2**31 - 1,
    },
    "search": {
        "type": "string",
        "description": "Only the passages with this text, from the offset on.",
        "minLength": 1,
        "maxLength": 200,
    },
}


def read_piece(text: str, source: str, *, offset: int, limit: int) -> str:
    """Return at most `limit` characters from an offset on; `source` names the text."""
    piece = text[offset : offset + limit]
    end, total = offset + len(piece), len(text)
    continuation = f"the next begin at offset {end}" if end < total else "there are no more"
    position = f"Characters {offset:,} to {end:,} of the {total:,} of {source}"
    return f"[{position}; {continuation}.]\n{piece}"


def list_passages(text: str, wanted_text: str, source: str, *, offset: int, limit: int) -> str:
    """Return passages of at most `limit` characters together, from an offset on; case is ignored.

    Places that are close together are in one passage.
    """
    pattern = re.compile(re.escape(wanted_text), re.IGNORECASE)
    passages: list[str] = []
    end = offset
    remaining_chars = limit
    has_more = False
    for match in pattern.finditer(text, offset):
        if match.end() <= end:
            continue
        has_more = bool(passages) and remaining_chars <= 0
        if has_more:
            break
        start = max(end, match.start() - PASSAGE_CHARS)
        end = min(len(text), match.end() + PASSAGE_CHARS)
        passages.append(f"[offset {start}]\n{text[start:end]}")
        remaining_chars -= end - start
    if not passages:
        return (
            f"[{wanted_text!r} is not in the {len(text):,} characters of {source}"
            f" from offset {offset:,} on.]"
        )
    continuation = f"more from offset {end} on" if has_more else "there are no more"
    heading = f"Passages with {wanted_text!r} in the {len(text):,} characters of {source}"
    return "\n\n".join([f"[{heading}; {continuation}.]", *passages])
