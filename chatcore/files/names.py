"""The name of a file as a label: one line of visible characters, of no path."""

import re
import unicodedata

MAX_CHARS = 200
_HIDDEN = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
}  # controls, and what turns the direction of writing


def label(name: str) -> str:
    """What is left of a name that somebody gave; its end, with the extension, survives. `file` where nothing is left."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    shown = "".join(
        " " if char.isspace() else char
        for char in last
        if char.isspace() or unicodedata.category(char) not in _HIDDEN
    )
    words = " ".join(shown.split()).strip(". ") or "file"
    if len(words) <= MAX_CHARS:
        return words
    return words[: MAX_CHARS - 21] + "…" + words[-20:]
