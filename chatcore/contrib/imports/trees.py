"""Bring the tree of a foreign chat into the order in which a session stores versions.

What was shown becomes the current messages. Whatever else follows the same message becomes a
branch that was superseded, and stands before what superseded it. Trees of real exports are broken
in many ways: parents are missing, name each other in circles, or the shown end is none of them.
Every message keeps a place, and each is told once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from chatcore.contrib.imports.conversation import ChatFile, ChatMessage, Node
from chatcore.transfer.times import EARLIEST


@dataclass(kw_only=True)
class PlacedMessage:
    """A message with its place. `branch` is None for a current one.

    `after` and `replaces` are the indexes of earlier ones; `after` is None for what follows none.
    """

    message: ChatMessage
    branch: int | None
    after: int | None
    replaces: int | None


@dataclass(eq=False)
class _Kept:
    message: ChatMessage
    is_shown: bool
    children: list["_Kept"] = field(default_factory=list)
    newest: datetime = EARLIEST


def arrange(nodes: Sequence[Node], leaf: str | None) -> list[PlacedMessage]:
    """Return the messages in the order of storing."""
    ordered, parents = _order([_leave_out_empty(node) for node in nodes])
    by_id = {node.id: node for node in ordered}
    if leaf not in by_id:
        leaf = _find_newest(ordered)
    shown = set()
    while leaf is not None:
        shown.add(leaf)
        leaf = parents[leaf]
    roots = _keep(ordered, parents, shown)
    return _place(roots)


def _leave_out_empty(node: Node) -> Node:
    is_empty = node.message is not None and node.message.is_empty
    return Node(id=node.id, parent=node.parent) if is_empty else node


def _order(nodes: Sequence[Node]) -> tuple[list[Node], dict[str, str | None]]:
    """Return the nodes, each after its parent, and the repaired parents."""
    by_id: dict[str, Node] = {}
    for node in nodes:
        by_id.setdefault(node.id, node)
    parents = {
        node.id: node.parent if node.parent in by_id and node.parent != node.id else None
        for node in by_id.values()
    }
    _adopt_orphans(by_id, parents)
    children: dict[str | None, list[str]] = {}
    for node_id, parent in parents.items():
        children.setdefault(parent, []).append(node_id)
    ordered: list[Node] = []
    seen: set[str] = set()
    for start in [*children.get(None, []), *by_id]:
        if start in seen:
            continue
        if parents[start] is not None:  # below no root, so its parents are a circle
            start = _find_first_of_circle(start, parents, list(by_id))
            parents[start] = None
        waiting = [start]
        while waiting:
            node_id = waiting.pop()
            if node_id in seen:
                continue
            seen.add(node_id)
            ordered.append(by_id[node_id])
            waiting += reversed(children.get(node_id, []))
    return ordered, parents


def _adopt_orphans(by_id: Mapping[str, Node], parents: dict[str, str | None]) -> None:
    """Let a message whose parent is missing follow the one before it in time, if nothing else does.

    One that cannot say when it was written stays at the top, as another beginning.
    """
    timed = sorted(
        (node.message.created_at, index, node.id)
        for index, node in enumerate(by_id.values())
        if node.message and node.message.created_at
    )
    taken = set(parents.values())
    for position, (_, _, node_id) in enumerate(timed):
        if not position or not by_id[node_id].parent or by_id[node_id].parent in by_id:
            continue
        end = timed[position - 1][2]
        if end not in taken:
            parents[node_id] = end
            taken.add(end)


def _find_first_of_circle(start: str, parents: Mapping[str, str | None], ids: Sequence[str]) -> str:
    way: dict[str, None] = {}
    node_id: str | None = start
    while node_id is not None and node_id not in way:
        way[node_id] = None
        node_id = parents[node_id]
    steps = list(way)
    circle = set(steps[steps.index(node_id) :]) if node_id is not None else {steps[-1]}
    return next(member for member in ids if member in circle)


def _find_newest(nodes: Sequence[Node]) -> str | None:
    times = [
        (node.message.created_at or EARLIEST, index)
        for index, node in enumerate(nodes)
        if node.message
    ]
    return nodes[max(times)[1]].id if times else None


def _keep(nodes: Sequence[Node], parents: dict[str, str | None], shown: set[str]) -> list[_Kept]:
    """Return the roots of the tree of messages that have words, with their asides."""
    has_words_below: set[str] = set()
    for node in reversed(nodes):
        is_kept = node.message is not None and not node.message.is_aside
        parent = parents[node.id]
        if parent is not None and (is_kept or node.id in has_words_below):
            has_words_below.add(parent)
    roots: list[_Kept] = []
    anchors: dict[str, _Kept | None] = {}
    asides: dict[str, list[ChatMessage]] = {}
    for node in nodes:
        parent = parents[node.id]
        anchor = anchors[parent] if parent is not None else None
        pending = asides[parent] if parent is not None else []
        message = node.message
        if message is not None and message.calls:
            message = _settle_calls(message, [*pending, *([anchor.message] if anchor else [])])
        if message is not None and message.is_aside and node.id in has_words_below:
            pending = [*pending, message]
        elif message is not None:
            if pending and message.role != "assistant":
                anchor = _add(roots, anchor, _join(pending), is_shown=node.id in shown)
                pending = []
            anchor = _add(roots, anchor, _join([*pending, message]), is_shown=node.id in shown)
            pending = []
        anchors[node.id], asides[node.id] = anchor, pending
    return roots


def _settle_calls(message: ChatMessage, earlier: Sequence[ChatMessage]) -> ChatMessage | None:
    """Give results to the calls before them, and return what is left of a message.

    A result that came as a message of its own is a call without arguments.
    """
    waiting = [call for part in earlier for call in part.calls if call.result is None]
    left = []
    for result in message.calls:
        call = None
        if not result.arguments:
            same = [call for call in waiting if call.id and call.id == result.id]
            call = next(iter(same or ([] if result.id else waiting)), None)
        if call is None:
            if result.arguments:  # without its call a result has no place
                left.append(result)
        else:
            call.result, call.is_error = result.result, result.is_error
            waiting.remove(call)
    message = replace(message, calls=left)
    return None if message.is_empty else message


def _add(
    roots: list[_Kept], anchor: _Kept | None, message: ChatMessage, *, is_shown: bool
) -> _Kept:
    kept = _Kept(message, is_shown)
    (anchor.children if anchor else roots).append(kept)
    return kept


def _join(parts: Sequence[ChatMessage]) -> ChatMessage:
    """Return an answer with what was thought, called and made before it."""
    last = parts[-1]
    if len(parts) == 1:
        return last
    return replace(
        last,
        reasoning="\n\n".join(part.reasoning for part in parts if part.reasoning),
        files=_leave_out_older([file for part in parts for file in part.files]),
        calls=[call for part in parts for call in part.calls],
        model=last.model or next((part.model for part in parts if part.model), ""),
    )


def _leave_out_older(files: list[ChatFile]) -> list[ChatFile]:
    """Return the files without the versions of a document that it had before."""
    newest = {file.name: file for file in files if file.is_version}
    return [file for file in files if newest.get(file.name, file) is file]


def _place(roots: list[_Kept]) -> list[PlacedMessage]:
    _measure(roots)
    placed: list[PlacedMessage] = []
    branches = 0
    # The alternatives of a place, each a node with its branch; the last taken is the first told.
    waiting: list[tuple[_Kept, int | None, int | None, list[int]]] = []

    def add_alternatives(
        kept: list[_Kept], branch: int | None, branch_after: int | None, after: int | None
    ) -> None:
        nonlocal branches
        if not kept:
            return
        main = next((child for child in kept if child.is_shown), None)
        main = main or max(reversed(kept), key=lambda child: child.newest)
        versions: list[int] = []
        waiting.append((main, branch, branch_after, versions))
        for child in reversed([child for child in kept if child is not main]):
            branches += 1
            waiting.append((child, branches, after, versions))

    add_alternatives(roots, None, None, None)
    while waiting:
        kept, branch, branch_after, versions = waiting.pop()
        index = len(placed)
        placed.append(
            PlacedMessage(
                message=kept.message,
                branch=branch,
                after=branch_after,
                replaces=versions[-1] if versions else None,
            )
        )
        versions.append(index)
        add_alternatives(kept.children, branch, branch_after, index)
    return placed


def _measure(roots: list[_Kept]) -> None:
    """Note in each message the time of the newest one below it."""
    order: list[_Kept] = []
    waiting = list(roots)
    while waiting:
        kept = waiting.pop()
        order.append(kept)
        waiting += kept.children
    for kept in reversed(order):
        times = [child.newest for child in kept.children]
        kept.newest = max([*times, kept.message.created_at or EARLIEST])
