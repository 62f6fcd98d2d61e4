"""The ids of this API, derived from those of sessions, messages and responses."""

import re
from dataclasses import dataclass
from uuid import UUID, uuid4

CONVERSATION_PREFIX = "conv_"
RESPONSE_PREFIX = "resp_"
APPROVAL_PREFIX = "mcpr"
# What an item is: a message, its reasoning, a call, one of a custom tool, a search for tools, the
# output of a call, a compaction, a call of an MCP server's tool, the question whether it may run.
ITEM_PREFIXES = ("msg", "rs", "fc", "ctc", "tsc", "fco", "cmp", "mcp", APPROVAL_PREFIX)
_ITEM_ID = re.compile(
    r"(?P<prefix>[a-z]{2,4})_(?P<session>[0-9a-f]{32})(?P<seq>[0-9a-f]{8})(?P<index>[0-9a-f]{2})?"
)


@dataclass(frozen=True)
class ItemId:
    """The place of an item: a message of a session, and which call of it."""

    prefix: str
    session_id: UUID
    seq: int
    index: int = 0


def build_stem(session_id: UUID, seq: int) -> str:
    """Return what the ids of all items of a message end with."""
    return f"{session_id.hex}{seq:08x}"


def build_random_stem() -> str:
    """Return the same for a message that is not stored."""
    return f"{uuid4().hex}{0:08x}"


def build_call_item_id(stem: str, index: int, prefix: str = "fc") -> str:
    """Return the id of a message's call."""
    return f"{prefix}_{stem}{index:02x}"


def build_server_call_id(stem: str, index: int) -> str:
    """Return the id of a message's call number `index`, which an MCP server answers."""
    return f"mcp_{stem}{index:02x}"


def build_approval_id(stem: str, index: int) -> str:
    """Return the id of the question whether a message's call number `index` may be made."""
    return f"{APPROVAL_PREFIX}_{stem}{index:02x}"


def build_server_item_id(server_id: UUID) -> str:
    """Return the id of the list of an MCP server's tools."""
    return f"mcpl_{server_id.hex}"


def format_response_id(response_id: UUID) -> str:
    """Return the public id of a response."""
    return f"{RESPONSE_PREFIX}{response_id.hex}"


def format_conversation_id(session_id: UUID) -> str:
    """Return the id of a session as a conversation."""
    return f"{CONVERSATION_PREFIX}{session_id.hex}"


def parse_id(text: str, prefix: str) -> UUID | None:
    """Return the UUID of a public id, or None if it is none of ours."""
    digits = text.removeprefix(prefix)
    if not text.startswith(prefix) or not re.fullmatch(r"[0-9a-f]{32}", digits):
        return None
    return UUID(hex=digits)


def parse_item_id(text: str) -> ItemId | None:
    """Return the place of an item, or None if the id is none of ours."""
    match = _ITEM_ID.fullmatch(text)
    if match is None or match["prefix"] not in ITEM_PREFIXES:
        return None
    return ItemId(
        prefix=match["prefix"],
        session_id=UUID(hex=match["session"]),
        seq=int(match["seq"], 16),
        index=int(match["index"] or "0", 16),
    )
