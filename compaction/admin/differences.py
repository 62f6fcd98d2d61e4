"""Show what changed from one text to another, word by word."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

MAX_WORDS = 4_000  # comparing more would take seconds; both texts are shown then
_PIECE = re.compile(r"\s+|\w+|[^\w\s]")


def render_difference(before: str, after: str) -> SafeString:
    """Return the new text, with what went and what came marked."""
    parts = format_html_join("", "<{0}>{1}</{0}>", list_changes(before, after))
    return format_html('<div class="run-text">{}</div>', parts)


def list_changes(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield pieces of both texts in order: `span` stayed, `del` went, `ins` came."""
    old, new = _PIECE.findall(before), _PIECE.findall(after)
    if max(len(old), len(new)) > MAX_WORDS:
        yield from ((tag, text) for tag, text in (("del", before), ("ins", after)) if text)
        return
    matcher = SequenceMatcher(a=old, b=new, autojunk=False)
    for name, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if name == "equal":
            yield "span", "".join(new[new_start:new_end])
            continue
        if old_start < old_end:
            yield "del", "".join(old[old_start:old_end])
        if new_start < new_end:
            yield "ins", "".join(new[new_start:new_end])
