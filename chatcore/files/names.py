"""Turn a file's name into a label: one line of visible characters, without a path."""

import re
import unicodedata

MAX_CHARS = 200
# Unicode categories of characters that nobody sees: controls, marks that turn the direction of
# writing, surrogates, private and unassigned characters, separators of lines and paragraphs.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


def clean_file_name(name: str) -> str:
    """Return the visible part of a name, at most MAX_CHARS characters, or `file` if none is left.

    A long name is cut in the middle, so that the extension stays.
    """
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
