"""LobeHub (LobeChat): tables of everything, of version 7 or of its database, and single topics.

A chat is a topic of an assistant; what it said outside of topics is one more chat.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping

from chatcore.contrib.imports.conversation import Call, ChatFile, ChatMessage, Conversation, Node
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import Reader, Source, read_parts, read_role
from chatcore.transfer.times import parse_time

Rows = list[dict[str, object]]


class LobeHubReader(Reader):
    """Chats of LobeHub."""

    key = "lobehub"
    name = "LobeHub"

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return (
            {"schemaHash", "data"} <= sample.keys
            or {"exportType", "state"} <= sample.keys
            or {"exportedAt", "title", "messages", "version"} <= sample.keys
        )

    def read_object(self, value: dict[str, object], source: Source) -> Iterator[Conversation]:
        if "messages" in value:
            title = to_text(value.get("title"))
            yield _build_chat(title, {"title": title}, to_items(value["messages"]), {}, {})
            return
        tables = to_dict(value.get("data")) or to_dict(value.get("state"))
        sessions = {row.get("id"): row for row in to_items(tables.get("sessions"))}
        prompts = _find_prompts(tables)
        plugins = {row.get("id"): row for row in to_items(tables.get("messagePlugins"))}
        by_topic: dict[tuple[str, object], Rows] = defaultdict(list)
        for row in to_items(tables.get("messages")):
            if topic := row.get("topicId"):
                by_topic["topic", topic].append(row)
            else:
                by_topic["session", row.get("sessionId")].append(row)
        topics = {row.get("id"): row for row in to_items(tables.get("topics"))}
        for (kind, chat_id), rows in by_topic.items():
            session_id = rows[0].get("sessionId")
            chat = topics.get(chat_id) if kind == "topic" else sessions.get(chat_id)
            chat = to_dict(chat)
            yield _build_chat(
                f"{kind}:{chat_id}", chat, rows, plugins, prompts.get(session_id) or {}
            )


def _find_prompts(tables: Mapping[str, object]) -> dict[object, dict[str, object]]:
    """Return the assistant of each session."""
    agents = {row.get("id"): row for row in to_items(tables.get("agents"))}
    found = {
        row.get("sessionId"): to_dict(agents.get(row.get("agentId")))
        for row in to_items(tables.get("agentsToSessions"))
    }
    for row in to_items(tables.get("sessions")):  # version 7 has it in the session
        if config := to_dict(row.get("config")):
            found.setdefault(row.get("id"), config)
    return found


def _build_chat(
    chat_id: str,
    chat: Mapping[str, object],
    rows: Rows,
    plugins: Mapping[object, Mapping[str, object]],
    agent: Mapping[str, object],
) -> Conversation:
    rows = sorted(rows, key=lambda row: str(parse_time(row.get("createdAt")) or ""))
    is_tree = any(row.get("parentId") for row in rows)
    nodes: list[Node] = []
    for index, row in enumerate(rows):
        previous = nodes[-1].id if nodes else None
        parent = to_text(row.get("parentId")) or None
        # Messages of before the tree was stored have no parents and are a line.
        if parent is None and (not is_tree or row.get("role") != "user"):
            parent = previous
        nodes.append(
            Node(
                id=to_text(row.get("id")) or str(index),
                parent=parent,
                message=_build_message(row, to_dict(plugins.get(row.get("id")))),
            )
        )
    title = to_dict(chat.get("meta")).get("title") or chat.get("title")
    times = [time for row in rows if (time := parse_time(row.get("createdAt")))]
    return Conversation(
        id=chat_id,
        title=to_text(title),
        created_at=parse_time(chat.get("createdAt")) or min(times, default=None),
        updated_at=parse_time(chat.get("updatedAt")) or max(times, default=None),
        system_prompt=to_text(agent.get("systemRole")),
        model=to_text(agent.get("model")),
        is_pinned=chat.get("favorite") in (True, 1) or chat.get("pinned") is True,
        nodes=nodes,
        leaf=_find_leaf(rows, nodes),
    )


def _find_leaf(rows: Rows, nodes: list[Node]) -> str | None:
    """Return the end of the branch that was shown, where a message says which child it is."""
    chosen = {
        row.get("id"): number
        for row in rows
        if isinstance(number := to_dict(row.get("metadata")).get("activeBranchIndex"), int)
    }
    if not chosen:
        return None
    children: dict[str | None, list[str]] = defaultdict(list)
    for node in nodes:
        children[node.parent].append(node.id)
    leaf: str | None = None
    seen: set[str | None] = set()
    while leaf not in seen and (below := children.get(leaf)):
        seen.add(leaf)
        number = chosen.get(leaf, len(below) - 1)
        leaf = below[number if 0 <= number < len(below) else -1]
    return leaf


def _build_message(row: Mapping[str, object], plugin: Mapping[str, object]) -> ChatMessage | None:
    role = to_text(row.get("role"))
    text, files = read_parts(row.get("content"))
    created_at = parse_time(row.get("createdAt"))
    if role == "tool":
        plugin = plugin or to_dict(row.get("plugin"))
        name = to_text(plugin.get("apiName")) or "tool"
        call_id = to_text(plugin.get("toolCallId")) or to_text(row.get("tool_call_id"))
        call = Call(id=call_id, name=name, arguments="", result=text)
        return ChatMessage(role="assistant", calls=[call], created_at=created_at)
    reasoning = row.get("reasoning")
    calls = [
        Call(
            id=to_text(tool.get("id")),
            name=to_text(tool.get("apiName")) or to_text(tool.get("identifier")) or "tool",
            arguments=to_text(tool.get("arguments")) or "{}",
        )
        for tool in to_items(row.get("tools"))
    ]
    built = ChatMessage(
        role=read_role(role),
        reasoning=to_text(reasoning) or to_text(to_dict(reasoning).get("content")),
        created_at=created_at,
        model=to_text(row.get("model")) or to_text(to_dict(row.get("extra")).get("fromModel")),
        files=files,
        calls=calls,
    )
    if calls:
        built.lead = text
    else:
        built.text = text
    files += [
        ChatFile(name=to_text(file) or to_text(to_dict(file).get("name")) or "file")
        for file in [*to_list(row.get("files")), *to_list(row.get("imageList"))]
    ]
    return built
