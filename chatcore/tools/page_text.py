"""The words of a fetched page: HTML without its markup, other text as it is."""

import re
from html.parser import HTMLParser

from chatcore.tools.base import ToolError

_HIDDEN_TAGS = {"script", "style", "noscript", "template", "svg", "iframe", "object"}
_BLOCK_TAGS = (
    {"address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figcaption", "figure", "footer", "form", "header"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "table", "title", "tr", "ul"}
)  # fmt: skip
_TEXT_TYPES = re.compile(
    r"text/|application/(.*\+)?(json|xml)|application/(javascript|yaml|x-ndjson)"
)
_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?([\w-]{1,40})""", re.IGNORECASE)


def extract_text(body: bytes, content_type: str) -> str:
    """The readable text of a body. `content_type` is the header's value. Raises ToolError for what is not text."""
    kind, _, parameters = content_type.lower().partition(";")
    kind = kind.strip() or "text/html"
    if not _TEXT_TYPES.match(kind):
        raise ToolError(f"The address answers with {kind[:80]}, which is not text.")
    text = _decode_body(body, parameters)
    return _strip_markup(text) if kind in {"text/html", "application/xhtml+xml"} else text.strip()


def _decode_body(body: bytes, parameters: str) -> str:
    header_match = re.search(r"""charset=["']?([\w-]+)""", parameters)
    meta_match = None if header_match else _META_CHARSET.search(body, 0, 2048)
    charset = (
        header_match[1]
        if header_match
        else meta_match[1].decode("ascii")
        if meta_match
        else "utf-8"
    )
    try:
        return body.decode(charset, errors="replace")
    except (LookupError, UnicodeError):
        return body.decode(errors="replace")


def _strip_markup(html: str) -> str:
    collector = _TextCollector()
    # Never closed: the parser's treatment of an unfinished tail is quadratic, and a tail cut off in a tag holds no words.
    collector.feed(html + "\n")  # the blank lets a last entity end
    lines = (" ".join(line.split()) for line in "".join(collector.pieces).splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


class _TextCollector(HTMLParser):
    """Collects the text outside hidden elements, a new line for every block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self._hidden_tag: str | None = None
        self._depth = 0

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
