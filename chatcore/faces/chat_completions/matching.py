"""Where a client's history meets what is stored: the longest beginning of the one that is the end of the other."""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from chatcore.faces.chat_completions.errors import Refused
from chatcore.faces.chat_completions.messages import Said, same_arguments
from chatcore.models import Attachment, Message, Session
from chatcore.providers.base import ToolCall
from chatcore.tools import output as tool_output

BEYOND = 64  # stored messages read besides as many as the client sent: an answer that it has not, with its rounds of tools
TRIED = 8  # overlaps that are looked at in full, where the same words come again and again
COLUMNS = (
    *(
        "pk",
        "seq",
        "role",
        "content",
        "tool_calls",
        "tool_call_id",
        "tool_name",
        "status",
        "original_chars",
        "turn_id",
        "turn__tools",
    ),
)


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A stored message as a client of this face was shown it; `pk` is the stored one that it ends with."""

    pk: int
    seq: int
    role: str
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tool_name: str = ""
    interrupted: bool = False
    cut: bool = False


@dataclass(frozen=True, kw_only=True)
class Place:
    """How a history goes on from what is stored: with `new` messages; or not at all, and then `again` is the message to answer anew."""

    new: Sequence[Said] = ()
    again: int | None = None


def place(session: Session, said: Sequence[Said]) -> Place:
    """Where the client's history meets the stored one. Reads no more than it sent, and a little. Raises 409, history_diverged."""
    limit = len(said) + BEYOND
    rows = list(
        session.messages.current()
        .exclude(role=Message.Role.SYSTEM)
        .order_by("-seq")
        .values(*COLUMNS)[:limit]
    )[::-1]
    stored, from_the_start = (
        seen(row for row in rows if row["status"] in ("complete", "interrupted")),
        len(rows) < limit,
    )
    if not stored:
        return Place(new=said)
    whole = [each for each in stored if not each.interrupted]
    for known in (stored, whole) if len(whole) < len(stored) else (stored,):
        found = _among(session, said, known, from_the_start=from_the_start)
        if found:
            return found
    if all(each.role != "assistant" for each in said):
        return Place(new=said)
    raise Refused(
        409,
        "history_diverged",
        "These messages do not follow what the session holds.",
        param="messages",
    )


def seen(rows: Any) -> list[Seen]:
    """Stored messages as the client was shown them: without calls of built-in tools, whose answers are one with what follows them."""
    shown: list[Seen] = []
    before = ""
    for row in rows:
        theirs = None if row["turn_id"] is None else {tool["name"] for tool in row["turn__tools"]}
        if (
            row["role"] == Message.Role.TOOL
            and theirs is not None
            and row["tool_name"] not in theirs
        ):
            continue
        calls = tuple(
            ToolCall(**call)
            for call in row["tool_calls"]
            if theirs is None or call["name"] in theirs
        )
        content = row["content"]
        if row["role"] == Message.Role.ASSISTANT:
            content = "\n\n".join(text for text in (before, content) if text)
        if row["tool_calls"] and not calls:
            before = content
        else:
            before = ""
            shown.append(_seen(row, content, calls))
    return shown


def _seen(row: Mapping[str, Any], content: str, calls: tuple[ToolCall, ...]) -> Seen:
    return Seen(
        pk=row["pk"],
        seq=row["seq"],
        role=row["role"],
        content=content,
        calls=calls,
        call_id=row["tool_call_id"],
        tool_name=row["tool_name"],
        interrupted=row["status"] == Message.Status.INTERRUPTED,
        cut=row["original_chars"] is not None,
    )


def _among(
    session: Session, said: Sequence[Said], stored: Sequence[Seen], *, from_the_start: bool
) -> Place | None:
    """The place, if what the client knows is the end of what is stored, or all but the answer at its end."""
    overlap = _longest(session, said, stored)
    if overlap == len(said):
        return Place(again=stored[-1].pk) if said[-1].role == "user" else Place()
    asked = _without_answer(stored, said[-1].role)
    if len(asked) < len(stored) and _longest(session, said, asked) == len(said):
        whole = from_the_start and len(said) == len(asked)
        if whole or any(each.role != "user" for each in said):
            return Place(again=asked[-1].pk)
    return Place(new=said[overlap:]) if overlap else None


def _without_answer(stored: Sequence[Seen], role: str) -> Sequence[Seen]:
    """Up to the last stored message of the role that the client's history ends with."""
    ends = [index for index, each in enumerate(stored, start=1) if each.role == role]
    return stored[: ends[-1]] if ends else ()


def _longest(session: Session, said: Sequence[Said], stored: Sequence[Seen]) -> int:
    for _, length in zip(
        range(TRIED),
        _overlaps([_key(each) for each in said], [_key(each) for each in stored]),
        strict=False,
    ):
        if _same(session, said[:length], stored[len(stored) - length :]):
            return length
    return 0


def _overlaps(first: Sequence[Hashable], then: Sequence[Hashable]) -> Iterator[int]:
    """Every length at which `first` begins as `then` ends, the longest first (Knuth, Morris and Pratt)."""
    borders = [0] * (len(first) + 1)
    length = 0
    for index in range(1, len(first)):
        while length and first[length] != first[index]:
            length = borders[length]
        length += first[length] == first[index]
        borders[index + 1] = length
    length = 0
    for key in then if first else ():
        while length and (length == len(first) or first[length] != key):
            length = borders[length]
        length += first[length] == key
    while length:
        yield length
        length = borders[length]


def _key(message: Said | Seen) -> Hashable:
    """What two messages that are the same have in common; a tool's result may have been cut when it was stored."""
    if message.role == "tool":
        return message.role, message.call_id
    return (
        message.role,
        message.content,
        tuple((call.id, call.name, same_arguments(call.arguments)) for call in message.calls),
    )


def _same(session: Session, said: Sequence[Said], stored: Sequence[Seen]) -> bool:
    """What the keys leave open: results, and images by their sizes."""
    results = [
        (mine, kept)
        for mine, kept in zip(said, stored, strict=True)
        if mine.role == "tool" and mine.content != kept.content
    ]
    if any(
        not kept.cut
        or tool_output.of(session, kept.tool_name, mine.content).shown(kept.seq) != kept.content
        for mine, kept in results
    ):
        return False
    shown = {
        kept.pk: sorted(len(image.data) for image in mine.images)
        for mine, kept in zip(said, stored, strict=True)
        if mine.images
    }
    if not shown:
        return True
    files = Attachment.objects.filter(
        message__in=shown, kind=Attachment.Kind.FILE, media_type__startswith="image/"
    )
    sizes: dict[int, list[int]] = {}
    for pk, size in files.order_by("size").values_list("message_id", "size"):
        sizes.setdefault(pk or 0, []).append(size)
    return sizes == shown
