"""Knobs for the summary: what it is, how a model is asked for it, and where it is sent."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import KnobGroup, knob
from compaction.core.rules import (
    FILLED_TEXT,
    FLAG,
    NAMES,
    POSITIVE,
    RATIO,
    SECONDS,
    TEXT,
    allow_null,
    require_choice,
    require_integer,
)

TemplateName = Literal["facts", "nine_sections", "workstream", "task_state", "handoff"]
SummarySource = Literal["shown", "originals"]
MergingMode = Literal["sequential", "parts"]
SpanMode = Literal["rewritten", "frozen"]
PromptForm = Literal["transcript", "conversation", "cheapest"]
RetryScope = Literal["call", "run"]
ToolSelection = Literal["all", "listed"]
Place = Literal["system_prefix", "first_system", "first_user", "last_user"]

_NUMBER = require_integer(0)
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
