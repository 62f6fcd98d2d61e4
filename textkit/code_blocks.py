"""Find the blocks of a text whose line breaks and indentation count, for example code.

A block is fenced, in `<pre>`, quoted by `>` or indented. Indented prose and lists are none.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_MARK = r"[ \t]*+(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?"
_MARKED = re.compile(
    rf"^{_MARK}(?P<fence>`{{3,}}+|~{{3,}}+)[^`\n]*+(?:\n|\Z)"
    r"(?:(?![ \t]*+(?P=fence))[^\n]*+\n|(?![ \t]*+(?P=fence))[^\n]++\Z)*+"
    r"(?P<end>[ \t]*+(?P=fence)[`~]*+)?"
    rf"|^(?:{_MARK}|[^<\n]*+(?<=:)[ \t]?)<(?:pre\b[^>\n]*>|code>[ \t]*(?=\n))"
    r"(?:[^<]++|<(?!/pre>|/code>[ \t]*+(?:\n|\Z)))*+(?P<end_tag></(?:pre|code)>)?",
    re.MULTILINE,
)
_FENCE = re.compile(r"^([ \t]*)(?:(?:[-*+•]|\d{1,3}[.)])[ \t]+)?(`{3,}|~{3,})")
_QUOTED = re.compile(r"[ \t]{0,3}>|\.\.\. ?")  # and the lines after the first one of a Python shell
_QUOTE_MARK = re.compile(r"[ \t]{0,3}>(?: ?>)*")
_QUOTED_CODE = re.compile(r"(?: {2,}|\t)\S| ?(?:```|~~~|<pre\b)")
_DEEP = re.compile(r"(?: {4}| {0,3}\t)")
_ITEM = re.compile(r"\s*(?:[-*•–+]|\(?\d{1,3}[.)])\s")
_PROSE_END = re.compile(r"[.!?…。！？][\"'”’»)\]*_]*\Z")
# A line that belongs to the indented lines below it, and one that ends them.
_OPENING = re.compile(r"[{(\[]\Z|=>\Z|->\Z|\A[a-z@\"'].*:\Z")
_KEY = re.compile(r"[\w.\"'-]+:\Z")
_CLOSING = re.compile(
    r"[)\]}]+[^\w]*\Z|[)\]}]+ *(?:else|catch|finally)\b.*[{:]\Z|(?:end|fi|done|esac)\Z"
)


@dataclass(frozen=True, slots=True)
class Block:
    """A block's place in its text. `is_open` if the mark that ends it is missing."""

    start: int
    end: int
    is_open: bool = False


def find_code_blocks(text: str) -> list[Block]:
    """Return the blocks of a text in order, without the line break at their end."""
    blocks: list[Block] = []
    offset = 0
    for match in _MARKED.finditer(text):
        if _QUOTED.match(text, text.rfind("\n", 0, match.start()) + 1):
            continue
        blocks += _find_unmarked_blocks(text, offset, match.start())
        is_open = match["end"] is None and match["end_tag"] is None
        blocks.append(Block(match.start(), match.start() + len(match[0].rstrip()), is_open))
        offset = match.end()
    return [*blocks, *_find_unmarked_blocks(text, offset, len(text))]


def close_code_block(text: str, *, source: str = "") -> str:
    """Return a text that ends within a marked block, with the mark that ends it or without it.

    The block is kept if the `source` has it whole, or if the text has nothing else.
    """
    block = next(iter(reversed(find_code_blocks(text))), None)
    if block is None or not block.is_open:
        return text
    opening, _, code = text[block.start : block.end].partition("\n")
    fence = _FENCE.search(opening)
    end_mark = fence[1] + fence[2] if fence else f"</{'code' if '<code' in opening else 'pre'}>"
    is_whole = re.search(rf"{re.escape(code.strip())}\s*(?:```|~~~|</(?:code|pre)>)", source)
    text_before = text[: block.start].rstrip()
    if text_before and not is_whole:
        return text_before
    return f"{text.rstrip()}\n{end_mark}"


def _find_unmarked_blocks(text: str, start: int, end: int) -> Iterator[Block]:
    lines = text[start:end].split("\n")
    starts = [start]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    index = 0
    while index < len(lines):
        last = _find_quotation_end(lines, index)
        is_code = last > index and _is_quoted_code(lines[index:last])
        if last == index:
            last = _find_indented_end(lines, index)
            is_code = last > index and _is_indented_code(lines, index, last)
        if is_code:
            yield Block(starts[index], starts[last - 1] + len(lines[last - 1].rstrip()))
        index = max(last, index + 1)


def _find_quotation_end(lines: Sequence[str], index: int) -> int:
    if not lines[index].lstrip(" ").startswith(">"):
        return index
    while index < len(lines) and _QUOTED.match(lines[index]):
        index += 1
    return index


def _is_quoted_code(lines: Sequence[str]) -> bool:
    """Return whether a quotation has code in it, or is what a Python shell shows."""
    if lines[0].lstrip(" ").startswith(">>> "):
        return True
    return any(_QUOTED_CODE.match(_QUOTE_MARK.sub("", line, count=1)) for line in lines)


def _find_indented_end(lines: Sequence[str], index: int) -> int:
    """Return the place behind indented lines, which a line that opens them may stand above."""
    is_opened = _opens_block(lines[index])
    last = index
    for place in range(index + is_opened, len(lines)):
        line = lines[place]
        if _is_indented(line, is_opened=is_opened) or (
            last > index and _CLOSING.match(line.strip())
        ):
            last = place + 1
        elif last == index or (line.strip() and not _opens_block(line)):
            break
    return last


def _is_indented_code(lines: Sequence[str], index: int, last: int) -> bool:
    """Return whether indented lines are no prose and no list, whose marks stand for themselves."""
    is_opened = _opens_block(lines[index])
    is_item = bool(_ITEM.match(lines[index + is_opened]))
    if is_item and not (is_opened and _KEY.match(lines[index].strip())):
        return False
    above = next((line.rstrip() for line in reversed(lines[:index]) if line.strip()), "")
    if _ITEM.match(above) and not above.endswith((":", "{", "(", "[")):
        return False
    written = [line.rstrip() for line in lines[index:last] if line.strip()]
    return sum(bool(_PROSE_END.search(line)) for line in written) * 2 <= len(written)


def _is_indented(line: str, *, is_opened: bool) -> bool:
    return bool(line.strip()) and bool(line[:1].isspace() if is_opened else _DEEP.match(line))


def _opens_block(line: str) -> bool:
    """Return whether a line that is not indented itself opens a block of indented ones."""
    if _DEEP.match(line) or _ITEM.match(line):
        return False
    return bool(_OPENING.search(line.strip()))
