"""Which tools of a request's server are offered, and about which a person is asked.

The rules are those of OpenAI's `mcp` tool: a filter names tools, or says whether a tool must be one
that only reads, by the server's own word.
"""

from typing import TypedDict


class Filter(TypedDict, total=False):
    tool_names: list[str] | None
    read_only: bool | None


class Rules(TypedDict, total=False):
    allowed: Filter | None
    always: Filter | None
    never: Filter | None
    description: str


def allows(rules: Rules, name: str, *, is_read_only: bool) -> bool:
    """Return True if the tool may be offered."""
    tool_filter = rules.get("allowed")
    return tool_filter is None or _matches(tool_filter, name, is_read_only=is_read_only)


def find_approval(rules: Rules, name: str, *, is_read_only: bool) -> str | None:
    """Return `always` or `never` for a tool of which the rules say so, else None."""
    for approval, tool_filter in (("always", rules.get("always")), ("never", rules.get("never"))):
        if tool_filter is not None and _matches(tool_filter, name, is_read_only=is_read_only):
            return approval
    return None


def _matches(tool_filter: Filter, name: str, *, is_read_only: bool) -> bool:
    names, read_only = tool_filter.get("tool_names"), tool_filter.get("read_only")
    if names is None and read_only is None:
        return False
    return (names is None or name in names) and (read_only is None or read_only == is_read_only)
