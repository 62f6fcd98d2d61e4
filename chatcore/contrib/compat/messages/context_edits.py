"""What a client asks to be done with its context: `context_management` and `compaction`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.context.clearing import Clearing, ClearToolsEdit
from chatcore.contrib.compat.bodies import Body
from chatcore.turns import client_tools

Number = Annotated[int, Field(ge=0, lt=2**31)]


def _check_name(name: str) -> str:
    if not client_tools.TOOL_NAME_PATTERN.fullmatch(name):
        raise ValueError("The name of a tool.")
    return name


ToolNames = Annotated[
    list[Annotated[str, AfterValidator(_check_name)]], Field(max_length=client_tools.MAX_TOOLS)
]


class Tokens(Body):
    type: Literal["input_tokens"]
    value: Number


class ToolUses(Body):
    type: Literal["tool_uses"]
    value: Number


class ThinkingTurns(Body):
    type: Literal["thinking_turns"]
    value: Annotated[int, Field(ge=1, lt=2**31)]


class Everything(Body):
    type: Literal["all"]


class Edit(Body):
    """An edit. What a client misspells would be done otherwise in silence, so it is refused."""

    model_config = ConfigDict(extra="forbid")


class Summary(Body):
    """Asks for a summary of what came before."""

    instructions: str | None = None


class Summarize(Summary):
    type: Literal["summarize"]


class CompactEdit(Summary, Edit):
    """Summarize when a request has so many tokens."""

    type: Literal["compact_20260112"]
    trigger: Tokens | None = None
    pause_after_compaction: bool | None = None


class ClearTools(Edit):
    """Leave out old results of tools."""

    type: Literal["clear_tool_uses_20250919"]
    trigger: Annotated[Tokens | ToolUses, Field(discriminator="type")] | None = None
    keep: ToolUses | None = None
    clear_at_least: Tokens | None = None
    exclude_tools: ToolNames | None = None
    clear_tool_inputs: bool | ToolNames | None = None

    def to_edit(self) -> ClearToolsEdit:
        """Return it in the words of the context, with the defaults of there."""
        given: dict[str, Any] = {
            "trigger_kind": self.trigger and self.trigger.type,
            "trigger": self.trigger and self.trigger.value,
            "keep": self.keep and self.keep.value,
            "clear_at_least": self.clear_at_least and self.clear_at_least.value,
            "excluded_tools": self.exclude_tools,
        }
        inputs = self.clear_tool_inputs or []
        edit = ClearToolsEdit(cleared_inputs=None if inputs is True else inputs)
        return replace(edit, **{name: each for name, each in given.items() if each is not None})


class ClearThinking(Edit):
    """Leave out the thoughts of older answers."""

    type: Literal["clear_thinking_20251015"]
    keep: (
        Literal["all"] | Annotated[Everything | ThinkingTurns, Field(discriminator="type")] | None
    ) = None

    @property
    def kept_turns(self) -> int | None:
        """How many answers keep their thoughts; None for all."""
        if self.keep is None:
            return 1
        return self.keep.value if isinstance(self.keep, ThinkingTurns) else None


class ContextManagement(Edit):
    edits: list[
        Annotated[CompactEdit | ClearTools | ClearThinking, Field(discriminator="type")]
    ] = []


EDIT_TYPES = ("compact_20260112", "clear_tool_uses_20250919", "clear_thinking_20251015")


def drop_unknown_edits(body: Mapping[str, Any]) -> tuple[Mapping[str, Any], list[str]]:
    """Return a body without edits of types that are not known, and their names as fields."""
    management = body.get("context_management")
    edits = management.get("edits") if isinstance(management, Mapping) else None
    if not (isinstance(management, Mapping) and isinstance(edits, list)):
        return body, []
    types = [edit.get("type") if isinstance(edit, Mapping) else None for edit in edits]
    unknown_types = [type for type in types if isinstance(type, str) and type not in EDIT_TYPES]
    kept_edits = [edit for edit, type in zip(edits, types, strict=True) if type in EDIT_TYPES]
    if not unknown_types:
        return body, []
    body = {**body, "context_management": {**management, "edits": kept_edits}}
    return body, [f"context_management.{type[:64]}" for type in unknown_types]


@dataclass(frozen=True, kw_only=True)
class ContextEdits:
    """The edits of a request. `clearing` is what both `clear_` edits leave out."""

    compact: CompactEdit | None = None
    clearing: Clearing | None = None
    summarize: Summarize | None = None

    @property
    def are_named(self) -> bool:
        """True if the answer is to tell which edits were applied."""
        return bool(self.compact or self.clearing)


def sort_edits(management: ContextManagement | None, summarize: Summarize | None) -> ContextEdits:
    """Return the edits of a request. Raises the 400 problem that names the field."""
    if summarize and management:
        raise InvalidFieldError("compaction", "Not together with context_management.")
    compact: CompactEdit | None = None
    clearing = Clearing()
    types: set[str] = set()
    for index, edit in enumerate(management.edits if management else ()):
        if edit.type in types:
            path = f"context_management.edits[{index}].type"
            raise InvalidFieldError(path, "Another edit has this type.")
        types.add(edit.type)
        match edit:
            case CompactEdit():
                compact = edit
            case ClearTools():
                clearing = replace(clearing, tools=edit.to_edit())
            case ClearThinking():
                clearing = replace(clearing, kept_thinking_turns=edit.kept_turns)
    is_clearing = bool(types - {"compact_20260112"})
    return ContextEdits(
        compact=compact, clearing=clearing if is_clearing else None, summarize=summarize
    )
