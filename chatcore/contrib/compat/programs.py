"""Which conversation a request of a coding program belongs to, by the names that it sends.

Programs run agents of their own below a conversation, several at once. The requests of such a
subagent carry the name of the whole conversation and the subagent's own: it has a session below
that of the conversation, and neither reads the other.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

MAX_SESSION_NAME_CHARS = 255
SESSION_HEADER = "X-Session-Id"


@dataclass(frozen=True, kw_only=True)
class ThreadName:
    """The name of a request's session, and that of the session above it; empty if there is none."""

    name: str = ""
    parent: str = ""


@dataclass(frozen=True, kw_only=True)
class _Subagent:
    """A subagent's own id, and that of the subagent above it, empty below the conversation."""

    id: str
    parent_id: str = ""


def name_thread(name: str, headers: Mapping[str, str]) -> ThreadName:
    """Return the thread of a request in the conversation that its user has named.

    `headers` finds them in any spelling.
    """
    if not name:
        return ThreadName()
    subagent = _find_subagent(headers)
    if subagent is None:
        return ThreadName(name=name, parent=headers.get("X-Parent-Session-Id", ""))
    return ThreadName(
        name=_join_names(name, subagent.id), parent=_join_names(name, subagent.parent_id)
    )


def _find_subagent(headers: Mapping[str, str]) -> _Subagent | None:
    agent_id = headers.get("X-Claude-Code-Agent-Id", "")
    if agent_id:
        parent_id = headers.get("X-Claude-Code-Parent-Agent-Id", "")
        return _Subagent(id=agent_id, parent_id=parent_id)
    # Codex: the session is that of the whole conversation, a thread is that of an agent.
    parent_id = headers.get("X-Codex-Parent-Thread-Id", "")
    thread_id = headers.get("Thread-Id", "")
    if parent_id and thread_id:
        is_below_conversation = parent_id == headers.get("Session-Id", "")
        return _Subagent(id=thread_id, parent_id="" if is_below_conversation else parent_id)
    return None


def _join_names(name: str, subagent_id: str) -> str:
    """Return the name of a subagent's session; without an id that of the conversation."""
    if not subagent_id:
        return name
    joined_name = f"{name}/{subagent_id}"
    if len(joined_name) <= MAX_SESSION_NAME_CHARS and joined_name.isprintable():
        return joined_name
    return hashlib.sha256(joined_name.encode()).hexdigest()
