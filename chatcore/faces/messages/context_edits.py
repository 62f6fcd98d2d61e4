"""What a client asks to be done with its context: `context_management` and `compaction`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatcore.faces.content_parts import parse_text, require_object
from chatcore.rest.problems import InvalidFieldError

COMPACT, CLEAR_TOOLS, CLEAR_THINKING = (
    "compact_20260112",
    "clear_tool_uses_20250919",
    "clear_thinking_20251015",
)


@dataclass(frozen=True, kw_only=True)
class CompactEdit:
    """Summarize what came before when a request has `trigger` tokens."""

    trigger: int = 150_000
    instructions: str = ""
    is_pause: bool = False


@dataclass(frozen=True, kw_only=True)
class ClearToolsEdit:
    """Leave out the results of all tools but the newest `keep`, from a trigger on.

    The trigger is a number of tokens, or of uses of tools. `cleared_inputs` are the tools whose
    inputs go too; None for all of them.
    """

    trigger_kind: str = "input_tokens"
    trigger: int = 100_000
    keep: int = 3
    clear_at_least: int = 0
    excluded_tools: frozenset[str] = frozenset()
    cleared_inputs: frozenset[str] | None = frozenset()


@dataclass(frozen=True, kw_only=True)
class ContextEdits:
    """The edits of a request. `kept_thinking_turns` is None where all thoughts are kept."""

    compact: CompactEdit | None = None
    clear_tools: ClearToolsEdit | None = None
    kept_thinking_turns: int | None = None
    summarize: CompactEdit | None = None

    @property
    def are_named(self) -> bool:
        """True if the answer is to tell which edits were applied."""
        return bool(self.compact or self.list_clearing())

    def list_clearing(self) -> list[str]:
        """Return the types of the edits that leave out results or thoughts.

        A session has them from its own policy instead.
        """
        edits = {CLEAR_TOOLS: self.clear_tools, CLEAR_THINKING: self.kept_thinking_turns}
        return [type for type, edit in edits.items() if edit is not None]


def parse_context_edits(body: Mapping[str, Any]) -> ContextEdits:
    """Return the edits of a request. Raises the 400 problem that names the field."""
    compaction, management = body.get("compaction"), body.get("context_management")
    if compaction is not None:
        return ContextEdits(summarize=_parse_compaction(compaction, management))
    if management is None:
        return ContextEdits()
    path = "context_management.edits"
    edits = require_object(management, "context_management").get("edits") or []
    if not isinstance(edits, list):
        raise InvalidFieldError(path, "A list of edits.")
    members: dict[str, Any] = {}
    for index, item in enumerate(edits):
        edit_path = f"{path}[{index}]"
        edit = require_object(item, edit_path)
        type = edit.get("type")
        if type == COMPACT:
            members["compact"] = _parse_compact(edit, edit_path)
        elif type == CLEAR_TOOLS:
            members["clear_tools"] = _parse_clear_tools(edit, edit_path)
        elif type == CLEAR_THINKING:
            members["kept_thinking_turns"] = _parse_kept_turns(edit, edit_path)
        else:
            known_types = ", ".join((COMPACT, CLEAR_TOOLS, CLEAR_THINKING))
            raise InvalidFieldError(f"{edit_path}.type", f"One of {known_types}.")
    return ContextEdits(**members)


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
    cleared_inputs: frozenset[str] | None = None
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
    return _parse_value(edit, path, "keep", ("thinking_turns",), 1)[1]


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


def _parse_names(value: Any, path: str) -> frozenset[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InvalidFieldError(path, "A list of names of tools.")
    return frozenset(value)


def _parse_flag(value: Any, path: str) -> bool:
    if value is not None and not isinstance(value, bool):
        raise InvalidFieldError(path, "Either true or false.")
    return bool(value)


def _parse_instructions(edit: Mapping[str, Any], path: str) -> str:
    value = edit.get("instructions")
    return "" if value is None else parse_text(value, f"{path}.instructions").strip()
