"""What the admin pages of compaction are made of."""

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from uuid import UUID

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from chatcore.accounts import audit
from chatcore.models import Session

MAX_OPEN_ROWS = 20  # of a table; a longer one is folded
MAX_WORDS = 4_000  # comparing more would take seconds; both texts are shown then
_PIECE = re.compile(r"\s+|\w+|[^\w\s]")


def find_session(session_id: UUID) -> Session | None:
    """Return a session, hidden or not, with its owner."""
    return Session.all_objects.select_related("owner").filter(pk=session_id).first()


def note_act(act: str, session_id: UUID, *, detail: str = "") -> None:
    """Add an entry about the session to the audit log."""
    audit.record(act, object_type="chatcore.session", object_id=session_id, detail=detail)


def render_preformatted(text: str) -> SafeString:
    """Return a text as HTML that shows its line breaks and spaces."""
    return format_html('<div class="run-text">{}</div>', text)


def render_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> SafeString:
    """Return a table, folded if it is long; the cells may be HTML that was made safe."""
    head_cells = format_html_join("", "<th>{}</th>", ((name,) for name in head))
    body = format_html_join("", "<tr>{}</tr>", ((_render_cells(row),) for row in rows))
    table = format_html(
        '<div class="run-scroll"><table class="run-table"><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table></div>",
        head_cells,
        body,
    )
    if len(rows) <= MAX_OPEN_ROWS:
        return table
    return format_html("<details><summary>{} rows</summary>{}</details>", len(rows), table)


def _render_cells(row: Sequence[object]) -> SafeString:
    return format_html_join("", "<td>{}</td>", ((cell,) for cell in row))


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
