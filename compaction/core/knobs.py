"""The knobs of a policy, in groups: frozen dataclasses that check their values when created."""

import math
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from typing import Any, ClassVar, Literal, TypeGuard, get_args

Phase = Literal["after_response", "before_request", "on_model_change", "on_overflow", "manual"]
Basis = Literal["window", "input"]
CountingMethod = Literal["characters", "features"]
Rounding = Literal["floor_min1", "floor", "ceil"]
CalibrationMode = Literal["last_usage", "max", "floor", "none"]

ProtectionKind = Literal["token_ratio", "count", "count_ratio", "per_role", "user_turns"]
CrossingItem = Literal["keep", "prune"]

TemplateName = Literal["facts", "nine_sections", "workstream", "task_state", "handoff"]
SummarySource = Literal["shown", "originals"]
MergingMode = Literal["sequential", "parts"]
SpanMode = Literal["rewritten", "frozen"]
PromptForm = Literal["transcript", "conversation", "cheapest"]
RetryScope = Literal["call", "run"]
ToolSelection = Literal["all", "listed"]
Place = Literal["system_prefix", "first_system", "first_user", "last_user"]

TargetKind = Literal["tail", "fits"]
SizeUnit = Literal["chars", "bytes", "tokens"]
KeptEnd = Literal["head", "tail", "middle_out", "quarters"]
FallbackKind = Literal["drop_oldest", "slide_window", "notice", "error"]
FileSharing = Literal["proportional", "even"]
TurnConduct = Literal["proceed", "wait"]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. Its expectation completes the sentence "must be ..." and fills the reference."""

    expectation: str
    accepts: Callable[[object], bool]

    def find_complaint(self, value: object) -> str | None:
        """Return what is wrong with a value, as a clause without its subject, or None."""
        return None if self.accepts(value) else f"must be {self.expectation}, not {value!r}"


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite int or float; True and False do not count as numbers.

    Nor does a whole number that is too large to count with.
    """
    if not isinstance(value, int | float) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_ratio(value: object) -> bool:
    return is_number(value) and 0 <= value <= 1


def _is_positive(value: object) -> bool:
    return is_number(value) and value > 0


def _is_filled_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_name_list(value: object) -> bool:
    return isinstance(value, tuple) and all(map(_is_filled_text, value))


def _is_seconds_list(value: object) -> bool:
    return isinstance(value, tuple) and all(
        is_number(seconds) and seconds >= 0 for seconds in value
    )


RATIO = Rule("a ratio between 0 and 1", _is_ratio)
POSITIVE = Rule("a number above zero", _is_positive)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
TEXT = Rule("a text", lambda value: isinstance(value, str))
FILLED_TEXT = Rule("a text that is not empty", _is_filled_text)
NAMES = Rule("a list of names", _is_name_list)
SECONDS = Rule("a list of numbers of seconds", _is_seconds_list)


def require_integer(minimum: int) -> Rule:
    """Build the rule for a whole number that is not below a minimum."""

    def accepts(value: object) -> bool:
        return isinstance(value, int) and not isinstance(value, bool) and value >= minimum

    return Rule(f"a whole number of at least {minimum}", accepts)


def require_choice(literal: object) -> Rule:
    """Build the rule for one of the names of a `Literal[...]` type."""
    names = get_args(literal)
    return Rule(
        f"one of {', '.join(names)}", lambda value: isinstance(value, str) and value in names
    )


def require_selection(names: tuple[str, ...]) -> Rule:
    """Build the rule for a list of different names out of these; the list may be empty."""

    def accepts(value: object) -> bool:
        if not isinstance(value, tuple):
            return False
        has_known_names = all(isinstance(name, str) and name in names for name in value)
        return has_known_names and len(set(value)) == len(value)

    return Rule(f"a list of different names out of {', '.join(names)}", accepts)


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


def require_values_by_name(rule: Rule) -> Rule:
    """Build the rule for an object with any names, in which every value follows the given rule."""

    def accepts(value: object) -> bool:
        return isinstance(value, Mapping) and all(
            isinstance(name, str) and rule.accepts(item) for name, item in value.items()
        )

    return Rule(f"an object that gives each name {rule.expectation}", accepts)


def allow_null(rule: Rule) -> Rule:
    """Build the rule that takes null, and else what the given rule takes."""
    return Rule(f"null or {rule.expectation}", lambda value: value is None or rule.accepts(value))


class PolicyError(ValueError):
    """A value that a policy cannot have.

    `field` is the name of the knob, for example `trigger.threshold`; `message` says what is wrong.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class KnobGroup:
    """The base of the groups. Every field of a group is a knob; `prefix` is the group's name."""

    __slots__ = ()
    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        for knob_field in list_knobs(type(self)):
            complaint = get_rule(knob_field).find_complaint(getattr(self, knob_field.name))
            if complaint:
                raise PolicyError(f"{self.prefix}.{knob_field.name}", complaint)


def knob(rule: Rule, help: str) -> Any:
    """Declare a knob: a dataclass field with its rule and its help text for the reference.

    The return type is Any, as for `dataclasses.field`, so that the field keeps its own annotation.
    """
    return field(metadata={"rule": rule, "help": help})


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


_TOKENS = require_integer(0)
_WINDOW = require_integer(1)


def _is_window(value: object) -> bool:
    return value == "disable" or _WINDOW.accepts(value)


def _is_reserve(value: object) -> bool:
    if value == "model" or _TOKENS.accepts(value):
        return True
    if not isinstance(value, Mapping) or set(value) != {"ratio", "max"}:
        return False
    return RATIO.accepts(value["ratio"]) and _TOKENS.accepts(value["max"])


@dataclass(frozen=True, kw_only=True, slots=True)
class WindowKnobs(KnobGroup):
    """The context window to assume for a model whose window is not known, in tokens."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(
        Rule('"disable" or a number of tokens above zero', _is_window),
        "The window of a model that the registry knows nothing about. `disable`: the sessions of "
        "such a model are not compacted unasked; a refusal for length teaches the window.",
    )
    by_family: Mapping[str, int] = knob(
        require_values_by_name(_WINDOW),
        "Windows by model family, for example `anthropic`. They come before `unknown`.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetKnobs(KnobGroup):
    """How much of the window a request may use, and what the ratios of a policy are ratios of."""

    prefix: ClassVar[str] = "budget"
    basis: Basis = knob(
        require_choice(Basis),
        "What ratios refer to: the whole window, or the input, which is the window without the "
        "output reserve.",
    )
    output_reserve: int | Mapping[str, float] | Literal["model"] = knob(
        Rule('a number of tokens, "model" or {"ratio": 0–1, "max": tokens}', _is_reserve),
        "Tokens kept free for the answer: a number; a share of the window with a maximum; or "
        "`model`, what the registry says of the model. A `max_tokens` that the session sets "
        "replaces it, unless the reserve is 0.",
    )
    safety_margin: int = knob(
        _TOKENS, "Tokens that `trigger.clamp` leaves free in addition to the output reserve."
    )
    floor_ratio: float = knob(
        RATIO, "The input is never smaller than this share of the window, whatever the reserve."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TriggerKnobs(KnobGroup):
    """When a session is compacted: at what size, and at which moments."""

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(RATIO, "The share of the window at which a context is too large.")
    clamp: bool = knob(
        FLAG,
        "Lower the threshold where it is above the input without `budget.safety_margin`, so that "
        "compaction comes before the window is full.",
    )
    strict: bool = knob(
        FLAG, "Act only above the threshold. If false, a context of exactly that size is too large."
    )
    phases: tuple[Phase, ...] = knob(
        require_selection(get_args(Phase)),
        "The moments at which a compaction may start. `on_overflow` is after the provider refused "
        "a request for its length; `manual` is when somebody asks for it.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class EstimateKnobs(KnobGroup):
    """How tokens are estimated where no provider has counted them."""

    prefix: ClassVar[str] = "estimate"
    method: CountingMethod = knob(
        require_choice(CountingMethod),
        "`characters` divides the number of characters; `features` uses a formula fitted to real "
        "tokenizers.",
    )
    chars_per_token: float = knob(POSITIVE, "Characters that make one token.")
    code_chars_per_token: float | None = knob(
        allow_null(POSITIVE), "The same for code and JSON. Null: as `chars_per_token`."
    )
    rounding: Rounding = knob(
        require_choice(Rounding),
        "How the tokens of one text become a whole number. `floor_min1` rounds down, but to 1 at "
        "least for a text that is not empty.",
    )
    per_message: int = knob(_TOKENS, "Tokens added for each message.")
    per_message_chars: int = knob(_TOKENS, "Characters added to each message.")
    per_conversation: int = knob(_TOKENS, "Tokens added once for each request.")
    image_tokens: int = knob(_TOKENS, "Tokens that an image takes.")
    family_multiplier: Mapping[str, float] = knob(
        require_values_by_name(POSITIVE),
        "Factors by model family, for families whose tokenizers count more than the estimate.",
    )
    safety_multiplier: float = knob(POSITIVE, "A factor for every text, to be on the safe side.")
    count_system: bool = knob(FLAG, "Count the system prompt.")
    count_tools: bool = knob(FLAG, "Count the definitions of tools.")
    calibration: CalibrationMode = knob(
        require_choice(CalibrationMode),
        "How the provider's count of the last call is used. `last_usage`: it replaces the estimate "
        "of everything up to its answer. `floor`: the larger of that and the estimate. `max`: the "
        "larger of the estimate and the input that the provider counted. `none`: not at all.",
    )


_NUMBER = require_integer(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProtectKnobs(KnobGroup):
    """Which messages no stage changes. Pinned messages are always protected."""

    prefix: ClassVar[str] = "protect"
    kind: ProtectionKind = knob(
        require_choice(ProtectionKind),
        "What the protected tail is. `token_ratio`: the newest messages that fit in `ratio` of the "
        "basis. `count`: the newest `count` messages. `count_ratio`: the newest `ratio` of all "
        "messages, rounded up. `per_role`: the newest `count` messages of each role. `user_turns`: "
        "the newest `count` turns.",
    )
    ratio: float = knob(
        RATIO,
        "The newest messages stay as they are: this share of the window, or of all messages where "
        "`protect.kind` is `count_ratio`.",
    )
    count: int = knob(_NUMBER, "For `count`, `per_role` and `user_turns`.")
    minimum: int = knob(_NUMBER, "For `count_ratio`: at least so many messages.")
    first: int = knob(_NUMBER, "So many of the first messages of the conversation stay too.")
    tools: tuple[str, ...] = knob(
        NAMES, "Results of these tools are changed by no stage except the summary."
    )
    plans: tuple[str, ...] = knob(
        NAMES,
        "Tools whose calls replace a whole list, in any case and also behind the name of a server, "
        "as `mcp__x__` or `x.`. The arguments of the newest such call stand word for word beside "
        "the summary.",
    )
    errors: bool = knob(FLAG, "Protect tool results that are errors in the same way.")
    min_chars: int = knob(
        _NUMBER, "Messages of up to so many characters are changed by no stage except the summary."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class StripKnobs(KnobGroup):
    """The stage `strip_images`: tool results and older messages are sent without their images."""

    prefix: ClassVar[str] = "strip"
    placeholder: str = knob(TEXT, "The text that replaces the images of a tool result.")
    other_placeholder: str = knob(
        TEXT, "The text that replaces those of any other message, for example a user's picture."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class PruneKnobs(KnobGroup):
    """The stage `prune_tool_outputs`: old tool results are replaced by a placeholder."""

    prefix: ClassVar[str] = "prune"
    protect_tokens: int = knob(_NUMBER, "So many tokens of the newest tool results stay.")
    minimum_savings: int = knob(
        _NUMBER, "Nothing is pruned unless it saves at least so many tokens."
    )
    strict: bool = knob(FLAG, "Pruning must save more than `minimum_savings`; equal is too little.")
    crossing_item: CrossingItem = knob(
        require_choice(CrossingItem),
        "What happens to the result with which the total goes over `protect_tokens`.",
    )
    skip_user_turns: int = knob(_NUMBER, "Results in so many of the newest turns stay.")
    protected_tools: tuple[str, ...] = knob(NAMES, "Results of these tools are never pruned.")
    placeholder: str = knob(TEXT, "The text that replaces a pruned result.")


@dataclass(frozen=True, kw_only=True, slots=True)
class DedupeKnobs(KnobGroup):
    """The stage `dedupe_file_reads`: of several reads of a whole file only the latest stays."""

    prefix: ClassVar[str] = "dedupe"
    tools: tuple[str, ...] = knob(NAMES, "The tools that read a file.")
    minimum_ratio: float = knob(
        RATIO, "The share of the tokens of a file's reads that must be saved, else they stay."
    )
    placeholder: str = knob(require_template("path"), "The text that replaces an earlier read.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ExcerptKnobs(KnobGroup):
    """The stage `excerpt`: large messages are cut to their beginning and their end."""

    prefix: ClassVar[str] = "excerpt"
    head_ratio: float = knob(RATIO, "The share of the characters that is kept of the beginning.")
    head_cap: int = knob(require_integer(1), "At most so many characters of the beginning.")
    tail_ratio: float = knob(RATIO, "The share of the characters that is kept of the end.")
    tail_cap: int = knob(_NUMBER, "At most so many characters of the end.")
    expected_ratio: float = knob(
        POSITIVE, "The share of a message's tokens that its excerpt is expected to take."
    )
    marker: str = knob(
        require_template("total", "omitted", "head", "tail"),
        "The text between beginning and end, with numbers of characters.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class SlideKnobs(KnobGroup):
    """The stage `slide_window`: the oldest messages are left out of the request."""

    prefix: ClassVar[str] = "slide"
    fraction: float = knob(
        RATIO,
        "The share of the remaining messages, an even number, that is left out in each step until "
        "the rest fits.",
    )
    marker: str = knob(TEXT, "The text that tells the model that messages were left out.")


_POSITIVE_NUMBER = require_integer(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryKnobs(KnobGroup):
    """The stage `summarize`: what a model is asked for, and how often."""

    prefix: ClassVar[str] = "summary"
    model: str = knob(
        FILLED_TEXT,
        "The model that writes: `same` is the session's own; else the name of another, for example "
        "`provider/name`. A model's `summary_model` in the registry comes before this.",
    )
    template: TemplateName = knob(
        require_choice(TemplateName), "The prompt, and with it the form of the summary."
    )
    spans: SpanMode = knob(
        require_choice(SpanMode),
        "`rewritten`: each summary is written of the earlier one and of the messages since. "
        "`frozen`: each span of messages is summarized once, from the messages alone, and the "
        "summary is composed of these texts.",
    )
    max_tokens: int = knob(_POSITIVE_NUMBER, "The most tokens that a summary may take.")
    room_ratio: float | None = knob(
        allow_null(RATIO),
        "The share of the window, or of the input, that a summary may take where that is more "
        "than `max_tokens`. Null: never more.",
    )
    min_words: int = knob(_POSITIVE_NUMBER, "The fewest words that the prompt asks for.")
    max_words: int = knob(_POSITIVE_NUMBER, "The most words that the prompt asks for.")
    retries: int = knob(_NUMBER, "How many more calls follow a failed one.")
    retry: RetryScope = knob(
        require_choice(RetryScope),
        "What is done again then: the `call`, or the whole `run`, from the loading of the messages "
        "on.",
    )
    backoff: tuple[float, ...] = knob(
        SECONDS, "Seconds to wait before each retry. The last number serves for further ones."
    )
    timeout: float = knob(POSITIVE, "Seconds that one call may take.")
    source: SummarySource = knob(
        require_choice(SummarySource),
        "The messages as they are `shown` after the stages before this one, or the `originals`.",
    )
    prompt: PromptForm = knob(
        require_choice(PromptForm),
        "What a call holds. `transcript`: the messages as quoted data. `conversation`: the talk as "
        "it was sent, which the provider may have in its cache, with the instruction behind it; "
        "only where the session's own model writes and one call is enough. `cheapest`: whichever "
        "costs less by the registry's prices and the newest answer's cache.",
    )
    merging: MergingMode = knob(
        require_choice(MergingMode),
        "How a conversation that needs several calls is summarized. `sequential`: each call "
        "extends the summary so far. `parts`: each part alone, then the summaries are merged.",
    )
    chunk_chars: int | None = knob(
        allow_null(require_integer(200)),
        "The most characters of the conversation in one call. Null: what the window takes.",
    )
    rollup_tokens: int | None = knob(
        allow_null(_POSITIVE_NUMBER),
        "A summary of more tokens is itself summarized. Null: never.",
    )
    tools: ToolSelection = knob(
        require_choice(ToolSelection),
        "Which tool calls and results the summarizer reads: `all`, or `listed` ones.",
    )
    tool_names: tuple[str, ...] = knob(NAMES, "The tools that are listed by name.")
    tool_prefixes: tuple[str, ...] = knob(NAMES, "The tools that are listed by their beginning.")
    state_delta: bool = knob(FLAG, "Also ask for changes of the structured state.")

    def choose_wait(self, retry: int) -> float:
        """Return how many seconds to wait before a retry, of which the first is 1."""
        return self.backoff[min(retry, len(self.backoff)) - 1] if self.backoff else 0


@dataclass(frozen=True, kw_only=True, slots=True)
class StateKnobs(KnobGroup):
    """How many items each section of the structured state holds; the oldest make room.

    Used where `summary.state_delta` is on.
    """

    prefix: ClassVar[str] = "state"
    decisions: int = knob(_NUMBER, "Key decisions.")
    constraints: int = knob(_NUMBER, "Active constraints.")
    tasks: int = knob(_NUMBER, "Tasks.")
    questions: int = knob(_NUMBER, "Open questions.")
    risks: int = knob(_NUMBER, "Risks.")
    artifacts: int = knob(_NUMBER, "Artifacts.")
    contributions: int = knob(_NUMBER, "Contributions.")


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryKnobs(KnobGroup):
    """The memory block: long-lived notes beside the structured state."""

    prefix: ClassVar[str] = "memory"
    entries: int = knob(
        _NUMBER, "With so many entries the oldest are folded into one text. 0: no memory block."
    )
    fold: int = knob(_NUMBER, "How many entries are folded at a time.")


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectKnobs(KnobGroup):
    """Where the summary stands in a request, and the texts around it."""

    prefix: ClassVar[str] = "inject"
    place: Place = knob(
        require_choice(Place),
        "`system_prefix`: in the system prompt. `first_system`: a system message before all "
        "others. `first_user`, `last_user`: a user message before, or after, all others.",
    )
    heading: str = knob(TEXT, "The text before the summary.")
    nudge: str = knob(TEXT, "The text after the summary.")
    failure_nudge: str = knob(
        TEXT,
        "The text that is sent instead when the summary failed but other stages made room.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class LedgerKnobs(KnobGroup):
    """What users said that must stay as they said it: it is written down without a model."""

    prefix: ClassVar[str] = "ledger"
    ratio: float = knob(
        RATIO,
        "The share of the window that the ledger may take beside the summary. 0: there is none.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallKnobs(KnobGroup):
    """What the newest user message brings back of what was said about it before the boundary."""

    prefix: ClassVar[str] = "recall"
    tokens: int = knob(
        require_integer(0), "The most tokens of earlier messages in a request. 0: no recall."
    )
    threshold: float = knob(
        RATIO, "The least score, between 0 and 1, of a passage that is worth bringing back."
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyKnobs(KnobGroup):
    """Comparing a summary with the messages that it replaces, before it is installed."""

    prefix: ClassVar[str] = "verify"
    checks: bool = knob(
        FLAG,
        "Refuse a summary that states what no message supports: numbers, dates, names, negations, "
        "another language, orders to its reader, a continued conversation.",
    )
    repair: bool = knob(
        FLAG,
        "Remove the untrue sentences of a summary where the rest stands, instead of refusing it; "
        "and without a ledger (`ledger.ratio` is 0) add rules and exact values that it leaves out. "
        "Used where `verify.checks` is on.",
    )
    extract: bool = knob(
        FLAG,
        "Where no summary could be written, install sentences of the messages word for word.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetKnobs(KnobGroup):
    """The size at which a pass stops."""

    prefix: ClassVar[str] = "target"
    ratio: float | None = knob(
        allow_null(RATIO), "The share of the basis to come down to. Null: what `otherwise` says."
    )
    otherwise: TargetKind = knob(
        require_choice(TargetKind),
        "`tail`: down to the protected tail and a summary. `fits`: just within the threshold.",
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolResultKnobs(KnobGroup):
    """How much of a tool's output is stored and sent."""

    prefix: ClassVar[str] = "tool_result"
    limit: int = knob(
        _POSITIVE_NUMBER,
        "The most that is kept of one output, in characters or in what `tool_result.unit` says.",
    )
    unit: SizeUnit = knob(
        require_choice(SizeUnit), "The unit of `limit`. A token is four characters here."
    )
    lines: int | None = knob(
        allow_null(_POSITIVE_NUMBER), "The most lines that are kept. Null: any number."
    )
    keep: KeptEnd = knob(
        require_choice(KeptEnd),
        "Which part is kept: the `head`, the `tail`, half of each (`middle_out`), or a quarter of "
        "head and three of tail (`quarters`).",
    )
    marker: str = knob(
        require_template("kept", "total", "omitted"), "The text that says what is missing."
    )
    spill: bool = knob(FLAG, "Store the whole output too, and give the model a tool that reads it.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FilesKnobs(KnobGroup):
    """How much of attached text files is sent."""

    prefix: ClassVar[str] = "files"
    budget_ratio: float = knob(
        RATIO, "All files together take at most this share of the room that everything else leaves."
    )
    sharing: FileSharing = knob(
        require_choice(FileSharing),
        "How files share that room if it is too small. `proportional`: each gives up the same "
        "share. `even`: each gets the same room at most, so that no large one starves a small one.",
    )
    fast_path_bytes: int = knob(_NUMBER, "A smaller file is sent whole while there is room.")
    preview_bytes: int = knob(_NUMBER, "Of a larger file only a preview is sent.")
    preview_chars: int = knob(_POSITIVE_NUMBER, "The characters of a preview.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FallbackKnobs(KnobGroup):
    """What happens after a failed compaction. Only the request changes, nothing that is stored."""

    prefix: ClassVar[str] = "fallback"
    kind: FallbackKind = knob(
        require_choice(FallbackKind),
        "`drop_oldest`: leave out the oldest messages until the rest fits. `slide_window`: the "
        "same in the steps of the stage. `notice`: keep what other stages did, and tell the model. "
        "`error`: refuse the request with a clear error.",
    )
    notify: bool = knob(FLAG, "Tell the user when older messages are left out of a request.")
    notice: str = knob(FILLED_TEXT, "What the user is told then.")


@dataclass(frozen=True, kw_only=True, slots=True)
class OverflowKnobs(KnobGroup):
    """What happens after the provider refused a request for its length."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(RATIO, "The share of the basis to come down to.")


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowKnobs(KnobGroup):
    """How runs are worked on, and how a session goes on meanwhile."""

    prefix: ClassVar[str] = "flow"
    while_compacting: TurnConduct = knob(
        require_choice(TurnConduct),
        "What a new turn does while a run is open. `wait`: until it ends, for `lease_seconds` at "
        "most.",
    )
    lease_seconds: int = knob(
        _POSITIVE_NUMBER,
        "Seconds without a sign of life after which another worker may take over, 30 at most.",
    )
    workers: int = knob(_POSITIVE_NUMBER, "How many runs of this policy are worked on at once.")
    attempts: int = knob(_POSITIVE_NUMBER, "How often a run may be claimed before it has failed.")
    log_requests: bool = knob(
        FLAG,
        "Log the size of each request at the level `INFO`, also of one that is sent unchanged.",
    )
    runtime_hint: bool = knob(
        FLAG,
        "Tell the model, in a loop of tool calls, how much is done and that all must be done.",
    )
