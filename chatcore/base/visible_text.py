"""Tell texts that nobody can see from those with words, as titles made of invisible signs."""

import unicodedata

# Not Cn: a newer emoji is none of the signs that this Python knows.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Mn", "Me", "Mc"})
# Letters by their category, which are drawn as nothing: fillers of Korean, and empty Braille.
_BLANKS = frozenset("\u115f\u1160\u3164\uffa0\u2800")


def is_visible(text: str) -> bool:
    """Return whether any sign of a text is drawn: no space, control or mark alone."""
    return any(unicodedata.category(sign) not in _UNSEEN and sign not in _BLANKS for sign in text)
