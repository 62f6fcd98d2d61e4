"""What a summary is, how it is asked for, and where it stands in the next request."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from compaction.core.knobs import (
    KnobGroup,
    check_choice,
    check_flag,
    check_integer,
    check_names,
    check_nonblank,
    check_optional,
    check_positive,
    check_seconds,
    check_text,
    knob,
)

TEMPLATES = ("facts", "nine_sections", "workstream", "task_state", "handoff")
PLACES = ("system_prefix", "first_system", "first_user", "last_user")


@dataclass(frozen=True, kw_only=True, slots=True)
class SummaryKnobs(KnobGroup):
    """What the summarizer is asked for, how it is given the conversation, and how many more calls a failed one gets.

    `model`: `same`, or the name of another (`provider/name`); a model's own `summary_model` in the registry comes before that. `backoff`:
    seconds before each retry, the last one again for further ones; `timeout`: seconds for one call. `source`: the messages as they are
    `shown`, or the `originals` behind their edits. `merging`: chunks one after the other into one summary (`sequential`), or `parts`
    summarized apart and then merged. `chunk_chars`: at most so many characters of transcript a call; null: by the summarizer's window
    alone. `rollup_tokens`: a summary above that is itself summarized. `tools`: whether calls and results go in: `all`, or `listed` ones,
    by name or prefix. `state_delta`: also ask for changes of the structured state.
    """

    prefix: ClassVar[str] = "summary"
    model: str = knob(check_nonblank)
    template: Literal["facts", "nine_sections", "workstream", "task_state", "handoff"] = knob(
        check_choice(*TEMPLATES)
    )
    max_tokens: int = knob(check_integer(1))
    min_words: int = knob(check_integer(1))
    max_words: int = knob(check_integer(1))
    retries: int = knob(check_integer(0))
    backoff: tuple[float, ...] = knob(check_seconds)
    timeout: float = knob(check_positive)
    source: Literal["shown", "originals"] = knob(check_choice("shown", "originals"))
    merging: Literal["sequential", "parts"] = knob(check_choice("sequential", "parts"))
    chunk_chars: int | None = knob(check_optional(check_integer(200)))
    rollup_tokens: int | None = knob(check_optional(check_integer(1)))
    tools: Literal["all", "listed"] = knob(check_choice("all", "listed"))
    tool_names: tuple[str, ...] = knob(check_names)
    tool_prefixes: tuple[str, ...] = knob(check_names)
    state_delta: bool = knob(check_flag)


@dataclass(frozen=True, kw_only=True, slots=True)
class StateKnobs(KnobGroup):
    """The most items that each section of the structured state keeps, the newest ones; used where `summary.state_delta` asks for it."""

    prefix: ClassVar[str] = "state"
    decisions: int = knob(check_integer(0))
    constraints: int = knob(check_integer(0))
    tasks: int = knob(check_integer(0))
    questions: int = knob(check_integer(0))
    risks: int = knob(check_integer(0))
    artifacts: int = knob(check_integer(0))
    contributions: int = knob(check_integer(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class MemoryKnobs(KnobGroup):
    """The memory block: when it has `entries` entries, the oldest `fold` are folded into its summary; 0 entries: there is none."""

    prefix: ClassVar[str] = "memory"
    entries: int = knob(check_integer(0))
    fold: int = knob(check_integer(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class InjectKnobs(KnobGroup):
    """Where the summary stands in a request, what stands before it, and what after it, outside of its envelope.

    `nudge` follows a summary; `failure_nudge` is sent instead of one when summarizing failed but other stages made room.
    """

    prefix: ClassVar[str] = "inject"
    place: Literal["system_prefix", "first_system", "first_user", "last_user"] = knob(
        check_choice(*PLACES)
    )
    heading: str = knob(check_text)
    nudge: str = knob(check_text)
    failure_nudge: str = knob(check_text)
