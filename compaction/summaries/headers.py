"""The lines of a transcript that say whose words follow, and texts that look like them.

Whoever writes a message, a tool's output or a summary could otherwise put words into the mouth of
another: the summary would then repeat them as the user's wish, for as long as the session lasts.
"""

import re

_BLANK = r"[\s\u200b-\u200f\u2060\ufeff]"
_FALSE_HEADER = re.compile(
    rf"[\[［【〔⟦](?={_BLANK}*+(?:"
    rf"(?:user|assistant|system|developer|tool|human|ai){_BLANK}*+(?:[\]］】〕⟧]|calls\b)"
    rf"|(?:results?|summary|summaries){_BLANK}++of\b"
    rf"|images{_BLANK}*+:))",
    re.IGNORECASE,
)
_NO_NAME = re.compile(r"[^\w.:/-]+")
MAX_NAME_CHARS = 100

# A header as the functions below write it, perhaps behind the number of its message.
HEADER = re.compile(
    r"^(?:\d+\. )?\[(?P<mark>user|assistant|system|result of [^\]\n]{1,200}|"
    r"(?:user|assistant) calls [^\]\n]{1,200}|summary of [^\]\n]{1,60})\]$",
    re.MULTILINE,
)


def escape_headers(text: str) -> str:
    """Return a text in which nothing can be mistaken for a header.

    Not only lines are changed: a long text is divided anywhere, and the rest begins a line.
    """
    # Most texts have no bracket, and the search for one kind takes a fortieth of that for five.
    if "[" not in text and text.isascii():
        return text
    return _FALSE_HEADER.sub("‹", text)


def render_words(role: str, text: str, *, images: int = 0) -> str:
    """Return what somebody said, and how many images he sent, under the header that names him."""
    words = escape_headers(text)
    if images:
        words = f"{words}\n[images: {images}]".lstrip()
    return f"[{role}]\n{words}"


def render_call(role: str, tool: str, arguments: str) -> str:
    """Return a tool call under its header."""
    return f"[{role} calls {_clean_name(tool)}]\n{escape_headers(arguments)}"


def render_result(tool: str, text: str, *, is_error: bool) -> str:
    """Return what a tool returned under the header that names it."""
    error_mark = ", an error" if is_error else ""
    return f"[result of {_clean_name(tool) or 'a tool'}{error_mark}]\n{escape_headers(text)}"


def render_earlier_summary(summary: str) -> str:
    """Return the summary of what came before the transcript under its header."""
    return f"[summary of what came before]\n{escape_headers(summary)}"


def render_part_summary(number: int, summary: str) -> str:
    """Return the summary of one part of a long transcript under its header."""
    return f"[summary of part {number}]\n{escape_headers(summary)}"


def _clean_name(tool: str) -> str:
    """Return the name as one word. An import and a model may write anything in its place."""
    return _NO_NAME.sub("_", tool)[:MAX_NAME_CHARS]
