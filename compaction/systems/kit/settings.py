"""What the systems can set beside the settings of the core."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import KnobGroup, add_settings, knob, require_below_threshold
from compaction.core.policy import Policy
from compaction.core.rules import (
    FLAG,
    NAMES,
    RATIO,
    TEXT,
    Rule,
    allow_null,
    is_number,
    require_choice,
    require_integer,
    require_values_by_name,
)
from compaction.summaries.templates import TEMPLATE

Basis = Literal["window", "input"]
ProtectionKind = Literal["token_ratio", "count", "count_ratio", "per_role", "user_turns"]
CrossingItem = Literal["keep", "prune"]
SummarySource = Literal["shown", "originals"]
MergingMode = Literal["sequential", "parts"]
RetryScope = Literal["call", "run"]
ToolSelection = Literal["all", "listed"]
Place = Literal["system_prefix", "first_system", "first_user", "last_user"]
TargetKind = Literal["tail", "fits"]
SizeUnit = Literal["chars", "bytes", "tokens"]
KeptEnd = Literal["head", "tail", "middle_out", "quarters"]
TurnConduct = Literal["proceed", "wait"]

_NUMBER = require_integer(0)
_POSITIVE_NUMBER = require_integer(1)


def _is_seconds_list(value: object) -> bool:
    return isinstance(value, tuple) and all(
        is_number(seconds) and seconds >= 0 for seconds in value
    )


def require_template(*placeholders: str) -> Rule:
    """Build the rule for a text whose only placeholders are these, for example `{total}`."""

    def accepts(value: object) -> bool:
        if not isinstance(value, str):
            return False
        try:
            value.format(**dict.fromkeys(placeholders, 0))
        except (KeyError, IndexError, ValueError, AttributeError):
            return False
        return True

    names = ", ".join(f"{{{name}}}" for name in placeholders)
    return Rule(f"a text with no placeholders but {names}", accepts)


def _is_window(value: object) -> bool:
    return value == "disable" or _POSITIVE_NUMBER.accepts(value)


def _is_reserve(value: object) -> bool:
    if value == "model" or _NUMBER.accepts(value):
        return True
    if not isinstance(value, Mapping) or set(value) != {"ratio", "max"}:
        return False
    return RATIO.accepts(value["ratio"]) and _NUMBER.accepts(value["max"])


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class WindowKnobs(KnobGroup):
    """The context window to assume for a model whose window is not known, in tokens."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(
        Rule('"disable" or a number of tokens above zero', _is_window),
        "disable",
        "The window of a model that the registry knows nothing about. `disable`: the sessions "
        "of such a model are not compacted unasked; a refusal for length teaches the window.",
    )
    by_family: Mapping[str, int] = knob(
        require_values_by_name(_POSITIVE_NUMBER),
        {},
        "Windows by model family, for example `anthropic`. They come before `unknown`.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetKnobs(KnobGroup):
    """How much of the window a request may use, and what the ratios of a policy are ratios of."""

    prefix: ClassVar[str] = "budget"
    basis: Basis = knob(
        require_choice(Basis),
        "window",
        "What ratios refer to: the whole window, or the input, which is the window without the "
        "output reserve.",
    )
    output_reserve: int | Mapping[str, float] | Literal["model"] = knob(
        Rule('a number of tokens, "model" or {"ratio": 0–1, "max": tokens}', _is_reserve),
        0,
        "Tokens kept free for the answer: a number; a share of the window with a maximum; or "
        "`model`, what the registry says of the model. A `max_tokens` that the session sets "
        "replaces it, unless the reserve is 0.",
    )
    safety_margin: int = knob(
        _NUMBER, 0, "Tokens that `trigger.clamp` leaves free in addition to the output reserve."
    )
    floor_ratio: float = knob(
        RATIO,
        0.5,
        "The input is never smaller than this share of the window, whatever the reserve.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class ThresholdKnobs(KnobGroup):
    """How a threshold is compared."""

    prefix: ClassVar[str] = "trigger"
    clamp: bool = knob(
        FLAG,
        False,
        "Lower the threshold where it is above the input without `budget.safety_margin`, so "
        "that compaction comes before the window is full.",
    )
    strict: bool = knob(
        FLAG,
        True,
        "Act only above the threshold. If false, a context of exactly that size is too large.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class TargetKnobs(KnobGroup):
    """The size at which a pass stops."""

    prefix: ClassVar[str] = "target"
    ratio: float | None = knob(
        allow_null(RATIO),
        None,
        "The share of the basis to come down to. Null: what `otherwise` says.",
    )
    otherwise: TargetKind = knob(
        require_choice(TargetKind),
        "tail",
        "`tail`: down to the protected tail and a summary. `fits`: just within the threshold.",
    )

    def check(self, policy: Policy) -> None:
        """Refuse a target that is at the threshold."""
        require_below_threshold("target.ratio", self.ratio, policy)


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class TailKnobs(KnobGroup):
    """Which messages no stage changes, beside the pinned ones."""

    prefix: ClassVar[str] = "protect"
    kind: ProtectionKind = knob(
        require_choice(ProtectionKind),
        "token_ratio",
        "What the protected tail is. `token_ratio`: the newest messages that fit in `ratio` of "
        "the basis. `count`: the newest `count` messages. `count_ratio`: the newest `ratio` of "
        "all messages, rounded up. `per_role`: the newest `count` messages of each role. "
        "`user_turns`: the newest `count` turns.",
    )
    count: int = knob(_NUMBER, 0, "For `count`, `per_role` and `user_turns`.")
    minimum: int = knob(_NUMBER, 0, "For `count_ratio`: at least so many messages.")
    first: int = knob(_NUMBER, 0, "So many of the first messages of the conversation stay too.")
    tools: tuple[str, ...] = knob(
        NAMES, (), "Results of these tools are changed by no stage except the summary."
    )
    errors: bool = knob(FLAG, False, "Protect tool results that are errors in the same way.")
    min_chars: int = knob(
        _NUMBER,
        0,
        "Messages of up to so many characters are changed by no stage except the summary.",
    )

    @property
    def replaces_tail(self) -> bool:
        """Whether the tail is a number of messages or turns, and no share of the window."""
        return self.kind != "token_ratio"


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class PruneKnobs(KnobGroup):
    """The stage `prune_tool_outputs`: old tool results are replaced by a placeholder."""

    prefix: ClassVar[str] = "prune"
    written: ClassVar[tuple[str, ...]] = ("placeholder",)
    protect_tokens: int = knob(_NUMBER, 40_000, "So many tokens of the newest tool results stay.")
    minimum_savings: int = knob(
        _NUMBER, 20_000, "Nothing is pruned unless it saves at least so many tokens."
    )
    strict: bool = knob(
        FLAG, False, "Pruning must save more than `minimum_savings`; equal is too little."
    )
    crossing_item: CrossingItem = knob(
        require_choice(CrossingItem),
        "keep",
        "What happens to the result with which the total goes over `protect_tokens`.",
    )
    skip_user_turns: int = knob(_NUMBER, 0, "Results in so many of the newest turns stay.")
    protected_tools: tuple[str, ...] = knob(NAMES, (), "Results of these tools are never pruned.")
    placeholder: str = knob(
        TEXT, "[Tool result cleared]", "The text that replaces a pruned result."
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class WritingKnobs(KnobGroup):
    """How summaries are written."""

    prefix: ClassVar[str] = "summary"
    template: str = knob(
        TEMPLATE,
        "facts",
        "The prompt, and with it the form of the summary.",
    )
    retry: RetryScope = knob(
        require_choice(RetryScope),
        "call",
        "What is done again then: the `call`, or the whole `run`, from the loading of the "
        "messages on.",
    )
    backoff: tuple[float, ...] = knob(
        Rule("a list of numbers of seconds", _is_seconds_list),
        (),
        "Seconds to wait before each retry. The last number serves for further ones.",
    )
    source: SummarySource = knob(
        require_choice(SummarySource),
        "shown",
        "The messages as they are `shown` after the stages before this one, or the `originals`.",
    )
    merging: MergingMode = knob(
        require_choice(MergingMode),
        "sequential",
        "How a conversation that needs several calls is summarized. `sequential`: each call "
        "extends the summary so far. `parts`: each part alone, then the summaries are merged.",
    )
    chunk_chars: int | None = knob(
        allow_null(require_integer(200)),
        None,
        "The most characters of the conversation in one call. Null: what the window takes.",
    )
    rollup_tokens: int | None = knob(
        allow_null(_POSITIVE_NUMBER),
        None,
        "A summary of more tokens is itself summarized. Null: never.",
    )
    tools: ToolSelection = knob(
        require_choice(ToolSelection),
        "all",
        "Which tool calls and results the summarizer reads: `all`, or `listed` ones.",
    )
    tool_names: tuple[str, ...] = knob(NAMES, (), "The tools that are listed by name.")
    tool_prefixes: tuple[str, ...] = knob(
        NAMES, (), "The tools that are listed by their beginning."
    )

    def includes_tool(self, name: str) -> bool:
        """Return whether the summarizer reads the calls and results of a tool."""
        return (
            self.tools == "all"
            or name in self.tool_names
            or (bool(self.tool_prefixes) and name.startswith(self.tool_prefixes))
        )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class InjectKnobs(KnobGroup):
    """Where the summary stands in a request, and the texts around it."""

    prefix: ClassVar[str] = "inject"
    written: ClassVar[tuple[str, ...]] = ("heading", "nudge", "failure_nudge")
    place: Place = knob(
        require_choice(Place),
        "system_prefix",
        "`system_prefix`: in the system prompt. `first_system`: a system message before all "
        "others. `first_user`, `last_user`: a user message before, or after, all others.",
    )
    heading: str = knob(TEXT, "", "The text before the summary.")
    nudge: str = knob(TEXT, "", "The text after the summary.")
    failure_nudge: str = knob(
        TEXT,
        "",
        "The text that is sent instead when the summary failed but other stages made room.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class ConductKnobs(KnobGroup):
    """How a session goes on around its runs."""

    prefix: ClassVar[str] = "flow"
    while_compacting: TurnConduct = knob(
        require_choice(TurnConduct),
        "proceed",
        "What a new turn does while a run is open. `wait`: until it ends, for `lease_seconds` "
        "at most.",
    )
    log_requests: bool = knob(
        FLAG,
        False,
        "Log the size of each request at the level `INFO`, also of one that is sent unchanged.",
    )
    runtime_hint: bool = knob(
        FLAG,
        False,
        "Tell the model, in a loop of tool calls, how much is done and that all must be done.",
    )


@add_settings
@dataclass(frozen=True, kw_only=True, slots=True)
class OutputKnobs(KnobGroup):
    """How a tool's output is cut to `tool_result.limit`."""

    prefix: ClassVar[str] = "tool_result"
    unit: SizeUnit = knob(
        require_choice(SizeUnit), "chars", "The unit of `limit`. A token is four characters here."
    )
    lines: int | None = knob(
        allow_null(_POSITIVE_NUMBER), None, "The most lines that are kept. Null: any number."
    )
    keep: KeptEnd = knob(
        require_choice(KeptEnd),
        "head",
        "Which part is kept: the `head`, the `tail`, half of each (`middle_out`), or a quarter "
        "of head and three of tail (`quarters`).",
    )
    marker: str = knob(
        require_template("kept", "total", "omitted"),
        "\n\n[... content truncated, showing first {kept} characters of {total} total ...]",
        "The text that says what is missing.",
    )
