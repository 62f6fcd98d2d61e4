"""The knobs of a policy, in groups: frozen dataclasses that check their values when created."""

from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar, get_args

from compaction.core.rules import (
    FILLED_TEXT,
    FLAG,
    NAMES,
    POSITIVE,
    RATIO,
    Rule,
    allow_null,
    require_choice,
    require_integer,
    require_selection,
)

if TYPE_CHECKING:
    from compaction.core.policy import Policy

Phase = Literal["after_response", "before_request", "on_model_change", "on_overflow", "manual"]
SpanMode = Literal["rewritten", "frozen"]
PromptForm = Literal["transcript", "conversation", "cheapest"]
FallbackKind = Literal["drop_oldest", "slide_window", "notice", "error"]
FileSharing = Literal["proportional", "even"]

# Of the window.
COMPACT_THRESHOLD_RATIO = 0.85
PROTECTED_WINDOW_RATIO = 0.25

PLAN_TOOLS = (
    "todo_write",
    "todowrite",
    "write_todos",
    "update_todos",
    "set_todos",
    "todo_list",
    "todolist",
    "update_todo_list",
    "update_plan",
    "manage_todo_list",
)


class PolicyError(ValueError):
    """A value that a policy cannot have.

    `field` is the name of the knob, for example `trigger.threshold`; `message` says what is wrong.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


def require_below_threshold(name: str, ratio: float | None, policy: "Policy") -> None:
    """Raise PolicyError for a share at or above the threshold: a pass could not get below it."""
    threshold = policy.trigger.threshold
    if ratio is not None and ratio >= threshold:
        raise PolicyError(name, f"must be below trigger.threshold ({threshold}), not {ratio}")


class KnobGroup:
    """The base of the groups. Every field of a group is a knob; `prefix` is the group's name.

    A group of the core and one of a system may have the same prefix: in a stored policy, their
    knobs stand together.
    """

    __slots__ = ()
    prefix: ClassVar[str]
    # The knobs whose texts stand in the place of messages, or around the summary.
    written: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        for knob_field in list_knobs(type(self)):
            complaint = get_rule(knob_field).find_complaint(getattr(self, knob_field.name))
            if complaint:
                raise PolicyError(f"{self.prefix}.{knob_field.name}", complaint)

    def check(self, policy: "Policy") -> None:
        """Raise PolicyError where a value does not go with the rest of a policy."""

    @property
    def replaces_tail(self) -> bool:
        """Whether the protected tail is something else than `protect.ratio` of the window."""
        return False


def knob(rule: Rule, default: object, help: str) -> Any:
    """Declare a knob: a dataclass field with its rule, its default and its help text.

    The return type is Any, as for `dataclasses.field`, so that the field keeps its own annotation.
    """
    metadata = {"rule": rule, "help": help}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def list_knobs(group: type[KnobGroup]) -> tuple[Field[object], ...]:
    """Return the knobs of a group, in the order in which they are declared."""
    return fields(group)  # type: ignore[arg-type]  # every concrete group is a dataclass


def get_rule(knob_field: Field[object]) -> Rule:
    """Return the rule that a knob's values follow."""
    rule: Rule = knob_field.metadata["rule"]
    return rule


def get_help(knob_field: Field[object]) -> str:
    """Return the help text of a knob, in Markdown."""
    help_text: str = knob_field.metadata["help"]
    return help_text


Group = TypeVar("Group", bound=KnobGroup)
OTHER_GROUPS: dict[type[KnobGroup], KnobGroup] = {}
"""The groups that the systems declare, with their defaults; see `add_settings`."""


def add_settings(group: type[Group]) -> type[Group]:
    """Let every policy have the settings of a group that a system declares (a decorator)."""
    OTHER_GROUPS[group] = group()
    return group


_NUMBER = require_integer(0)
_POSITIVE_NUMBER = require_integer(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerKnobs(KnobGroup):
    """When a session is compacted: at what size, and at which moments."""

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(
        RATIO, COMPACT_THRESHOLD_RATIO, "The share of the window at which a context is too large."
    )
    phases: tuple[Phase, ...] = knob(
        require_selection(get_args(Phase)),
        ("after_response", "on_model_change", "on_overflow", "manual"),
        "The moments at which a compaction may start. `on_overflow` is after the provider "
        "refused a request for its length; `manual` is when a user asks for it.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtectKnobs(KnobGroup):
    """Which messages no stage changes. Pinned messages are always protected."""

    prefix: ClassVar[str] = "protect"
    ratio: float = knob(
        RATIO,
        PROTECTED_WINDOW_RATIO,
        "The newest messages stay as they are: this share of the window, or of all messages "
        "where `protect.kind` is `count_ratio`.",
    )
    plans: tuple[str, ...] = knob(
        NAMES,
        PLAN_TOOLS,
        "Tools whose calls replace a whole list, in any case and also behind the name of a "
        "server, as `mcp__x__` or `x.`. The arguments of the newest such call stand word for "
        "word beside the summary.",
    )

    def check(self, policy: "Policy") -> None:
        """Refuse a tail above which a pass could not get below the threshold."""
        if not any(group.replaces_tail for group in policy.others.values()):
            require_below_threshold("protect.ratio", self.ratio, policy)


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryKnobs(KnobGroup):
    """Summaries: what a model is asked for, and how often."""

    prefix: ClassVar[str] = "summary"
    model: str = knob(
        FILLED_TEXT,
        "same",
        "The model that writes: `same` is the session's own; else the name of another, for "
        "example `provider/name`. A model's `summary_model` in the registry comes before this.",
    )
    spans: SpanMode = knob(
        require_choice(SpanMode),
        "rewritten",
        "`rewritten`: each summary is written of the earlier one and of the messages since. "
        "`frozen`: each span of messages is summarized once, from the messages alone, and the "
        "summary is composed of these texts.",
    )
    max_tokens: int = knob(_POSITIVE_NUMBER, 2_048, "The most tokens that a summary may take.")
    room_ratio: float | None = knob(
        allow_null(RATIO),
        None,
        "The share of the window, or of the input, that a summary may take where that is more "
        "than `max_tokens`. Null: never more.",
    )
    min_words: int = knob(_POSITIVE_NUMBER, 200, "The fewest words that the prompt asks for.")
    max_words: int = knob(_POSITIVE_NUMBER, 500, "The most words that the prompt asks for.")
    prompt: PromptForm = knob(
        require_choice(PromptForm),
        "transcript",
        "What a call holds. `transcript`: the messages as quoted data. `conversation`: the "
        "messages as they were sent, which the provider may have in its cache, with the "
        "instruction behind them; only where the session's own model writes and one call is "
        "enough. `cheapest`: "
        "whichever costs less by the registry's prices and the newest answer's cache.",
    )
    retries: int = knob(_NUMBER, 1, "How many more calls follow a failed one.")
    timeout: float = knob(POSITIVE, 240, "Seconds that one call may take.")

    def check(self, policy: "Policy") -> None:
        """Refuse a range of words that is empty."""
        if self.min_words > self.max_words:
            message = f"must not be above summary.max_words ({self.max_words})"
            raise PolicyError("summary.min_words", message)


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerKnobs(KnobGroup):
    """What users said that must stay as they said it: it is written down without a model."""

    prefix: ClassVar[str] = "ledger"
    ratio: float = knob(
        RATIO,
        0,
        "The share of the window that the ledger may take beside the summary. 0: there is none.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallKnobs(KnobGroup):
    """What the newest user message brings back of what was said about it before the boundary."""

    prefix: ClassVar[str] = "recall"
    tokens: int = knob(
        require_integer(0), 0, "The most tokens of earlier messages in a request. 0: no recall."
    )
    threshold: float = knob(
        RATIO, 0.15, "The least score, between 0 and 1, of a passage that is worth bringing back."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyKnobs(KnobGroup):
    """Comparing a summary with the messages that it replaces, before it is installed."""

    prefix: ClassVar[str] = "verify"
    checks: bool = knob(
        FLAG,
        False,
        "Refuse a summary that states what no message supports: numbers, dates, names, "
        "negations, another language, orders to its reader, a continued conversation.",
    )
    repair: bool = knob(
        FLAG,
        False,
        "Remove the untrue sentences of a summary where the rest stands, instead of refusing "
        "it; and without a ledger (`ledger.ratio` is 0) add rules and exact values that it "
        "leaves out. Used where `verify.checks` is on.",
    )
    extract: bool = knob(
        FLAG,
        False,
        "Where no summary could be written, install sentences of the messages word for word.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultKnobs(KnobGroup):
    """How much of a tool's output is stored and sent."""

    prefix: ClassVar[str] = "tool_result"
    limit: int = knob(
        _POSITIVE_NUMBER,
        30_000,
        "The most characters that are kept of one output.",
    )
    spill: bool = knob(
        FLAG, False, "Store the whole output too, and give the model a tool that reads it."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesKnobs(KnobGroup):
    """How much of attached text files is sent."""

    prefix: ClassVar[str] = "files"
    budget_ratio: float = knob(
        RATIO,
        0.6,
        "All files together take at most this share of the room that everything else leaves.",
    )
    sharing: FileSharing = knob(
        require_choice(FileSharing),
        "proportional",
        "How files share that room if it is too small. `proportional`: each gives up the same "
        "share. `even`: each gets the same room at most, so that no large one starves a small "
        "one.",
    )
    fast_path_bytes: int = knob(
        _NUMBER, 102_400, "A smaller file is sent whole while there is room."
    )
    preview_bytes: int = knob(_NUMBER, 5_242_880, "Of a larger file only a preview is sent.")
    preview_chars: int = knob(_POSITIVE_NUMBER, 2_000, "The characters of a preview.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FallbackKnobs(KnobGroup):
    """What happens after a failed compaction. Only the request changes, nothing that is stored."""

    prefix: ClassVar[str] = "fallback"
    kind: FallbackKind = knob(
        require_choice(FallbackKind),
        "drop_oldest",
        "`drop_oldest`: leave out the oldest messages until the rest fits. `slide_window`: the "
        "same in the steps of the stage. `notice`: keep what other stages did, and tell the "
        "model. `error`: refuse the request with a clear error.",
    )
    notify: bool = knob(FLAG, True, "Tell the user when older messages are left out of a request.")
    notice: str = knob(
        FILLED_TEXT,
        "Conversation history has been automatically trimmed",
        "The notice that the user gets then.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class OverflowKnobs(KnobGroup):
    """What happens after the provider refused a request for its length."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(RATIO, 0.7, "The share of the basis to come down to.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowKnobs(KnobGroup):
    """How runs are worked on. What is null here says the project, in its setting `COMPACTION`."""

    prefix: ClassVar[str] = "flow"
    lease_seconds: int | None = knob(
        allow_null(_POSITIVE_NUMBER),
        None,
        "Seconds without a sign of life after which another worker may take over, 30 at most.",
    )
    workers: int | None = knob(
        allow_null(_POSITIVE_NUMBER), None, "How many runs of this policy are worked on at once."
    )
    attempts: int | None = knob(
        allow_null(_POSITIVE_NUMBER), None, "How often a run may be claimed before it has failed."
    )
