"""Extract the text of a fetched page: HTML without its markup, other text unchanged."""

import re
import time
from html.parser import HTMLParser

from chatcore.tools.base import ToolError
from chatcore.tools.charsets import find_codec

MAX_BYTES = 2 * 1024 * 1024
MAX_HTML_BYTES = 512 * 1024
_PIECE_CHARS = 16 * 1024  # of a page are parsed between two looks at the clock
_HIDDEN_TAGS = {"script", "style", "noscript", "template", "svg", "iframe", "object"}
_BLOCK_TAGS = {
    "address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption",
    "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main",
    "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul",
}  # fmt: skip
_TEXT_TYPES = re.compile(
    r"text/|application/(.*\+)?(json|xml)|application/(javascript|yaml|x-ndjson)"
)
_MARKUP_TYPES = {"text/html", "application/xhtml+xml"}
_HEADER_CHARSET = re.compile(r"""charset=["']?([\w.:-]{1,40})""", re.IGNORECASE)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)


def limit_bytes(content_type: str) -> int:
    """Return how many bytes of a body of this type are read. Markup takes longer than text."""
    return MAX_HTML_BYTES if _parse_kind(content_type) in _MARKUP_TYPES else MAX_BYTES


def extract_text(body: bytes, content_type: str, *, deadline: float) -> str:
    """Return the readable text of a response body.

    `content_type` is the value of the header. Raises ToolError if the type is not a text, and
    TimeoutError if the time (of `time.monotonic()`) is past before all is read.
    """
    kind = _parse_kind(content_type)
    if not _TEXT_TYPES.match(kind):
        raise ToolError(f"The address answers with {kind[:80]}, which is not text.")
    text = _decode_body(body, content_type.partition(";")[2])
    return _strip_markup(text, deadline) if kind in _MARKUP_TYPES else text.strip()


def _parse_kind(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower() or "text/html"


def _decode_body(body: bytes, parameters: str) -> str:
    label = ""
    if header_match := _HEADER_CHARSET.search(parameters):
        label = header_match[1]
    elif meta_match := _META_CHARSET.search(body, 0, 2048):
        label = meta_match[1].decode("ascii")
    return body.decode(find_codec(label), errors="replace")


def _strip_markup(html: str, deadline: float) -> str:
    collector = _TextCollector()
    for start in range(0, len(html), _PIECE_CHARS):
        if time.monotonic() >= deadline:
            raise TimeoutError
        collector.feed(html[start : start + _PIECE_CHARS])
    # The parser is never closed: it handles an unfinished tail in quadratic time, and a tail that
    # was cut off inside a tag holds no words. The added newline ends a last entity such as "&amp".
    collector.feed("\n")
    lines = (" ".join(line.split()) for line in "".join(collector.pieces).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _TextCollector(HTMLParser):
    """A parser that collects the text outside hidden elements, with a new line for every block.

    `_depth` counts open elements with the name of the outermost hidden one, which may contain
    another of its kind.
    """

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden_tag: str | None = None
        self._depth = 0

    def parse_marked_section(self, i: int, report: bool = True) -> int:
        """Skip a section such as `<![CDATA[…`, as browsers do: the parser fails at unknown ones."""
        return self.parse_bogus_comment(i, report)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._hidden_tag:
            self._depth += tag == self._hidden_tag
        elif tag in _HIDDEN_TAGS:
            self._hidden_tag, self._depth = tag, 1
        elif tag in _BLOCK_TAGS:
            self.pieces.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        if self._hidden_tag:
            self._depth -= tag == self._hidden_tag
            self._hidden_tag = self._hidden_tag if self._depth else None
        elif tag in _BLOCK_TAGS:
            self.pieces.append("\n")
        elif tag in {"td", "th"}:
            self.pieces.append(" ")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _BLOCK_TAGS and not self._hidden_tag:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden_tag:
            self.pieces.append(data)
