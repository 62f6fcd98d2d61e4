"""The name of a file as a label: one line of visible characters, of no path."""

import re
import unicodedata

MAX_CHARS = 200
_HIDDEN_CATEGORIES = {
    "Cc",
    "Cf",
    "Cs",
    "Co",
    "Cn",
    "Zl",
    "Zp",
}  # controls, and what turns the direction of writing


def clean_file_name(name: str) -> str:
    """What is left of a name that somebody gave; its end, with the extension, survives. `file` where nothing is left."""
    base_name = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    visible_text = "".join(
        " " if char.isspace() else char
        for char in base_name
        if char.isspace() or unicodedata.category(char) not in _HIDDEN_CATEGORIES
    )
    file_name = " ".join(visible_text.split()).strip(". ") or "file"
    if len(file_name) <= MAX_CHARS:
        return file_name
    return file_name[: MAX_CHARS - 21] + "…" + file_name[-20:]
