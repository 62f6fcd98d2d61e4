"""What a client asks to be done with its context: `context_management` and `compaction`."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.context.clearing import CLEAR_THINKING, CLEAR_TOOLS, Clearing, ClearToolsEdit
from chatcore.contrib.compat.content_parts import parse_text, require_object
from chatcore.turns import client_tools

COMPACT = "compact_20260112"
# The members that an edit may have besides its type.
EDIT_MEMBERS = {
    COMPACT: {"trigger", "instructions", "pause_after_compaction"},
    CLEAR_TOOLS: {"trigger", "keep", "clear_at_least", "exclude_tools", "clear_tool_inputs"},
    CLEAR_THINKING: {"keep"},
}


@dataclass(frozen=True, kw_only=True)
class CompactEdit:
    """Summarize what came before when a request has `trigger` tokens."""

    trigger: int = 150_000
    instructions: str = ""
    is_pause: bool = False


@dataclass(frozen=True, kw_only=True)
class ContextEdits:
    """The edits of a request. `clearing` is what both `clear_` edits leave out."""

    compact: CompactEdit | None = None
    clearing: Clearing | None = None
    summarize: CompactEdit | None = None

    @property
    def are_named(self) -> bool:
        """True if the answer is to tell which edits were applied."""
        return bool(self.compact or self.clearing)


def parse_context_edits(body: Mapping[str, Any]) -> ContextEdits:
    """Return the edits of a request. Raises the 400 problem that names the field."""
    compaction, management = body.get("compaction"), body.get("context_management")
    if compaction is not None:
        return ContextEdits(summarize=_parse_compaction(compaction, management))
    if management is None:
        return ContextEdits()
    edits = _list_edits(require_object(management, "context_management"))
    clearing = None
    if CLEAR_TOOLS in edits or CLEAR_THINKING in edits:
        clearing = Clearing(
            tools=_parse_clear_tools(*edits[CLEAR_TOOLS]) if CLEAR_TOOLS in edits else None,
            kept_thinking_turns=(
                _parse_kept_turns(*edits[CLEAR_THINKING]) if CLEAR_THINKING in edits else None
            ),
        )
    compact = _parse_compact(*edits[COMPACT]) if COMPACT in edits else None
    return ContextEdits(compact=compact, clearing=clearing)


def _list_edits(management: Mapping[str, Any]) -> dict[str, tuple[Mapping[str, Any], str]]:
    """Return each edit and its path by its type."""
    path = "context_management.edits"
    _refuse_unknown_members(management, {"edits"}, "context_management")
    items = management.get("edits") or []
    if not isinstance(items, list):
        raise InvalidFieldError(path, "A list of edits.")
    edits: dict[str, tuple[Mapping[str, Any], str]] = {}
    for index, item in enumerate(items):
        edit_path = f"{path}[{index}]"
        edit = require_object(item, edit_path)
        type = edit.get("type")
        if not isinstance(type, str) or type not in EDIT_MEMBERS:
            raise InvalidFieldError(f"{edit_path}.type", f"One of {', '.join(EDIT_MEMBERS)}.")
        if type in edits:
            raise InvalidFieldError(f"{edit_path}.type", "Another edit has this type.")
        _refuse_unknown_members(edit, {"type"} | EDIT_MEMBERS[type], edit_path)
        edits[type] = edit, edit_path
    return edits


def _refuse_unknown_members(
    value: Mapping[str, Any], known_names: AbstractSet[str], path: str
) -> None:
    for name in sorted(value.keys() - known_names):
        if value[name] is not None:
            raise InvalidFieldError(f"{path}.{name}", "This is not supported here.")


def _parse_compaction(value: Any, management: Any) -> CompactEdit:
    compaction = require_object(value, "compaction")
    if compaction.get("type") != "summarize":
        raise InvalidFieldError("compaction.type", "summarize")
    if management is not None:
        raise InvalidFieldError("compaction", "Not together with context_management.")
    return CompactEdit(instructions=_parse_instructions(compaction, "compaction"))


def _parse_compact(edit: Mapping[str, Any], path: str) -> CompactEdit:
    return CompactEdit(
        trigger=_parse_value(edit, path, "trigger", ("input_tokens",), CompactEdit.trigger)[1],
        instructions=_parse_instructions(edit, path),
        is_pause=_parse_flag(edit.get("pause_after_compaction"), f"{path}.pause_after_compaction"),
    )


def _parse_clear_tools(edit: Mapping[str, Any], path: str) -> ClearToolsEdit:
    kinds = ("input_tokens", "tool_uses")
    trigger_kind, trigger = _parse_value(edit, path, "trigger", kinds, ClearToolsEdit.trigger)
    inputs = edit.get("clear_tool_inputs")
    cleared_inputs: list[str] | None = None
    if not isinstance(inputs, bool) or not inputs:
        cleared_inputs = _parse_names(inputs or [], f"{path}.clear_tool_inputs")
    return ClearToolsEdit(
        trigger_kind=trigger_kind,
        trigger=trigger,
        keep=_parse_value(edit, path, "keep", ("tool_uses",), ClearToolsEdit.keep)[1],
        clear_at_least=_parse_value(edit, path, "clear_at_least", ("input_tokens",), 0)[1],
        excluded_tools=_parse_names(edit.get("exclude_tools") or [], f"{path}.exclude_tools"),
        cleared_inputs=cleared_inputs,
    )


def _parse_kept_turns(edit: Mapping[str, Any], path: str) -> int | None:
    keep = edit.get("keep")
    if keep == "all" or (isinstance(keep, Mapping) and keep.get("type") == "all"):
        return None
    kept_turns = _parse_value(edit, path, "keep", ("thinking_turns",), 1)[1]
    if not kept_turns:
        raise InvalidFieldError(f"{path}.keep.value", "A whole number from 1.")
    return kept_turns


def _parse_value(
    edit: Mapping[str, Any], path: str, name: str, kinds: tuple[str, ...], default: int
) -> tuple[str, int]:
    """Return a number and what it counts, of which the first kind is the default."""
    if edit.get(name) is None:
        return kinds[0], default
    member = require_object(edit[name], f"{path}.{name}")
    kind, value = member.get("type"), member.get("value")
    if kind not in kinds:
        raise InvalidFieldError(f"{path}.{name}.type", f"One of {', '.join(kinds)}.")
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**31:
        raise InvalidFieldError(f"{path}.{name}.value", "A whole number from 0.")
    return str(kind), value


def _parse_names(value: Any, path: str) -> list[str]:
    if not isinstance(value, list) or len(value) > client_tools.MAX_TOOLS:
        raise InvalidFieldError(path, f"A list of at most {client_tools.MAX_TOOLS} names of tools.")
    for index, name in enumerate(value):
        if not isinstance(name, str) or not client_tools.TOOL_NAME_PATTERN.fullmatch(name):
            raise InvalidFieldError(f"{path}[{index}]", "The name of a tool.")
    return value


def _parse_flag(value: Any, path: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidFieldError(path, "Either true or false.")
    return bool(value)


def _parse_instructions(edit: Mapping[str, Any], path: str) -> str:
    value = edit.get("instructions")
    return "" if value is None else parse_text(value, f"{path}.instructions").strip()
