"""A chat as Markdown: a heading for each speaker, and what was said below it, as it was written.

Nothing that somebody wrote can look like a heading of this file: those of texts stand two levels
lower, a block of code is ended, and HTML is shown as text. What cannot be put so is a quotation,
which ends where its lines end, whatever is in it.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from markdown_it import MarkdownIt
from markdown_it.token import Token

from chatcore.models import Message, Session
from chatcore.transfer.transcript import TranscriptEntry, read_parts, select_current_messages

MAX_NESTING = 60
MAX_PARSED_CHARS = 50_000  # in longer texts all that looks like HTML is shown as text, code too
_PARSER = MarkdownIt("commonmark", {"maxNesting": MAX_NESTING})
_TAG = re.compile(r"<(?=[a-zA-Z/!?])")
_LINE_END = re.compile(r"\r\n?|\n")
_SIGN = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")


def write_markdown(session: Session) -> Iterator[str]:
    """Yield the chat as it is now, piece by piece."""
    title = session.title or _("New chat")
    yield f"# {_escape_line(title)}\n\n"
    if session.system_prompt:
        yield _write_section(_("System prompt"), _embed(session.system_prompt))
    boundary = session.compact_boundary_seq if session.compacted_summary else None
    for entries in read_parts(select_current_messages(session)):
        for entry in entries:
            if boundary is not None and entry.message.seq >= boundary:
                yield _write_summary(session)
                boundary = None
            yield _write_message(entry)
    if boundary is not None:
        yield _write_summary(session)


def _write_summary(session: Session) -> str:
    heading = _("Summary of the messages above, which the model reads in their place")
    return _write_section(heading, _embed(session.compacted_summary or ""))


def _write_message(entry: TranscriptEntry) -> str:
    message = entry.message
    parts = [_embed(message.content)] if message.content else []
    if message.role == Message.Role.TOOL:
        parts = [_fence(message.content)]
    for call in message.tool_calls:
        call_line = _("Tool call: %(name)s") % {"name": _escape_line(call["name"])}
        parts += [call_line, _fence(call["arguments"])]
    for file in entry.files:
        parts.append(_("File: %(name)s") % {"name": _escape_line(file.name)})
    if message.status == Message.Status.INTERRUPTED:
        parts.append(_("Stopped here."))
    elif message.is_cut:
        parts.append(_("Cut at its limit."))
    return _write_section(_name_speaker(message), *parts) if parts else ""


def _name_speaker(message: Message) -> str:
    moment = date_format(timezone.localtime(message.created_at), "SHORT_DATETIME_FORMAT")
    names = {
        Message.Role.SYSTEM: _("System"),
        Message.Role.USER: _("You"),
        Message.Role.ASSISTANT: _("Answer"),
        Message.Role.TOOL: _("Tool result"),
    }
    detail = message.tool_name if message.role == Message.Role.TOOL else message.model
    parts = [str(names[Message.Role(message.role)]), _escape_line(detail), moment]
    return " · ".join(part for part in parts if part)


def _write_section(heading: str, *parts: str) -> str:
    return "\n\n".join((f"## {heading}", *parts)) + "\n\n"


def _embed(text: str) -> str:
    """Return a text as it is, so that code and tables can be copied; else as a quotation."""
    if len(text) <= MAX_PARSED_CHARS:
        lines = _LINE_END.split(_show_tags(text).rstrip())
        with suppress(RecursionError):
            embedded = _lower_headings(lines)
            if _stands_alone(embedded):
                return embedded
    return _quote(text)


def _lower_headings(lines: list[str]) -> str:
    """Return a text whose headings begin at the third level, and whose last code is ended."""
    tokens = _PARSER.parse("\n".join(lines))
    end = ""
    for token, inline in pairwise([*tokens, *tokens[-1:]]):
        if not token.map or token.level:
            continue
        first, last = token.map
        if token.type == "heading_open" and token.markup.startswith("#"):
            level = min(6, len(token.markup) + 2)
            lines[first] = lines[first].replace(token.markup, "#" * level, 1)
        elif token.type == "heading_open":  # underlined
            lines[first:last] = [f"### {' '.join(inline.content.split())}"] + [""] * (
                last - first - 1
            )
        elif token.type == "fence" and not _is_end_of_fence(lines[last - 1], token, last - first):
            end = f"\n{token.markup}"
    return "\n".join(lines) + end


def _is_end_of_fence(line: str, fence: Token, line_count: int) -> bool:
    signs = line.strip()
    return line_count > 1 and len(signs) >= len(fence.markup) and not signs.strip(fence.markup[0])


def _stands_alone(text: str) -> bool:
    """Return whether a heading after the text is one, and none in it is on its level."""
    tokens = _PARSER.parse(f"{text}\n\n## end")
    headings = [token.tag for token in tokens if token.type == "heading_open" and not token.level]
    is_text = not any(map(_may_have_html, tokens))
    return is_text and headings[-1:] == ["h2"] and not {"h1", "h2"} & {*headings[:-1]}


def _quote(text: str) -> str:
    """Return a text as a quotation that nothing in it can leave."""
    lines = _LINE_END.split(_show_tags(text).rstrip())
    return "\n".join(f"> {line}".rstrip() for line in lines)


def _fence(text: str) -> str:
    """Return a text as a block of code that nothing in it can end."""
    longest_run = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest_run + 1)
    return f"{fence}\n{text}\n{fence}"


def _escape_line(text: str) -> str:
    """Return a short text as a part of a line, without a meaning in Markdown."""
    return _SIGN.sub(r"\\\1", " ".join(text.split()))


def _show_tags(text: str) -> str:
    """Return Markdown whose HTML is shown as text; what is code stays as it is."""
    if not _TAG.search(text):
        return text
    if len(text) > MAX_PARSED_CHARS:
        return _escape_tags(text)
    lines = _LINE_END.split(text)
    try:
        for token in _PARSER.parse("\n".join(lines)):
            if token.map and _may_have_html(token):
                for number in range(*token.map):
                    lines[number] = _escape_tags(lines[number])
        shown_text = "\n".join(lines)
        # Without this HTML, other lines may be read otherwise than before.
        if not any(map(_may_have_html, _PARSER.parse(shown_text))):
            return shown_text
    except RecursionError:
        pass
    return _escape_tags(text)


def _may_have_html(token: Token) -> bool:
    """Return whether a block has HTML, or is where the parser stops because it is nested deeply."""
    parts = [token, *(token.children or ())]
    return any(
        part.type in ("html_block", "html_inline") or part.level >= MAX_NESTING - 2
        for part in parts
    )


def _escape_tags(text: str) -> str:
    return _TAG.sub("&lt;", text)
