"""Measure and compact sessions from a program that embeds Chatcore.

`docs/embedding.md` shows these calls at work. They query the database: in asynchronous code, call
them through `sync_to_async`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack
from uuid import UUID

from chatcore.providers import overflow
from chatcore.providers.errors import ContextOverflow
from compaction.core.policy import Policy
from compaction.core.transcript import TranscriptEntry
from compaction.models import CompactionRun
from compaction.runs import engine, queue
from compaction.sessions import request_size, session_context
from compaction.sessions.facts import load_session_facts
from compaction.sessions.session_context import SessionContext
from compaction.sessions.transcripts import load_transcript
from compaction.systems.neurolink.budget_check import (
    BudgetCheck,
    check_context_budget,
    estimate_messages_tokens,
    estimate_tokens,
    truncate_to_token_budget,
)

MAX_CAUSES = 10

__all__ = [
    "BudgetCheck",
    "CompactionConfig",
    "CompactionResult",
    "ContextStats",
    "check_context_budget",
    "compact_session",
    "estimate_messages_tokens",
    "estimate_tokens",
    "get_context_overflow_provider",
    "get_context_stats",
    "is_context_overflow_error",
    "needs_compaction",
    "truncate_to_token_budget",
]

MIN_RECENT_MESSAGES = 4  # the fewest messages that keep_recent_ratio protects


class CompactionConfig(TypedDict, total=False):
    """Changes to the policy for one run, in NeuroLink's names (README.md).

    `policy` names another policy to start from.
    """

    policy: str
    enable_prune: bool
    enable_deduplicate: bool
    enable_summarize: bool
    enable_truncate: bool
    prune_protect_tokens: int
    prune_minimum_savings: int
    prune_protected_tools: list[str]
    keep_recent_ratio: float
    truncation_fraction: float
    summarization_provider: str
    summarization_model: str


STAGE_SWITCHES = {
    "enable_prune": "prune_tool_outputs",
    "enable_deduplicate": "dedupe_file_reads",
    "enable_summarize": "summarize",
    "enable_truncate": "slide_window",
}
USUAL_ORDER = (
    "strip_images",
    "prune_tool_outputs",
    "dedupe_file_reads",
    "excerpt",
    "summarize",
    "slide_window",
)
KNOB_PATHS = {
    "prune_protect_tokens": ("prune", "protect_tokens"),
    "prune_minimum_savings": ("prune", "minimum_savings"),
    "prune_protected_tools": ("prune", "protected_tools"),
    "keep_recent_ratio": ("protect", "ratio"),
    "truncation_fraction": ("slide", "fraction"),
}


@dataclass(frozen=True, kw_only=True)
class ContextStats:
    """How full a session's context is, in tokens; None where the window of its model is unknown."""

    estimated_input_tokens: int
    available_input_tokens: int | None
    usage_ratio: float | None
    should_compact: bool
    message_count: int


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """The result of a compaction; sizes are tokens.

    `messages` are sent from now on, and `summary` stands for the others. `reason` says why nothing
    was compacted.
    """

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    messages: tuple[TranscriptEntry, ...]
    summary: str | None
    reason: str
    run: UUID


def get_context_stats(
    session_id: UUID | str, provider: str = "", model: str = ""
) -> ContextStats | None:
    """Return how full the session's context is; None if the session does not exist or is empty.

    `provider` and `model` are names. They ask how full it would be with another model: one of the
    registry, else one that its catalog knows, else one of a family with an unknown window.
    """
    context = _load_nonempty_context(session_id, provider=provider, model=model)
    if context is None:
        return None
    tokens = request_size.measure_next_request(context).tokens
    budget = context.budget
    if budget is None:
        return ContextStats(
            estimated_input_tokens=tokens,
            available_input_tokens=None,
            usage_ratio=None,
            should_compact=False,
            message_count=context.facts.message_count,
        )
    return ContextStats(
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input,
        usage_ratio=tokens / max(1, budget.input),
        should_compact=budget.is_over(tokens),
        message_count=context.facts.message_count,
    )


def needs_compaction(session_id: UUID | str, provider: str = "", model: str = "") -> bool:
    """Return True if the session's context is over its threshold, or would be with another model.

    It is False for a session that does not exist, and where the window is unknown.
    """
    stats = get_context_stats(session_id, provider, model)
    return stats is not None and stats.should_compact


def compact_session(
    session_id: UUID | str, **config: Unpack[CompactionConfig]
) -> CompactionResult | None:
    """Compact the session now, whatever its size, and wait for the result.

    Returns None if the session does not exist or is empty. A summary that fails is not an
    exception: the result says so. Raises TypeError for an unknown name, PolicyError for a wrong
    value, UnknownPolicy, and RunConflict if another run of the session does not end within a
    minute.
    """
    unknown_names = config.keys() - CompactionConfig.__annotations__
    if unknown_names:
        raise TypeError(f"compact_session takes no {', '.join(sorted(unknown_names))}")
    context = _load_nonempty_context(session_id)
    if context is None:
        return None
    session_id = context.facts.session_id
    options: queue.RunOptions = {"policy": config.get("policy")}
    policy = queue.load_run_context(session_id, options).policy
    options["overrides"] = _build_overrides(policy, config)
    run = engine.compact_now(session_id, trigger=CompactionRun.Trigger.MANUAL, **options)
    return _build_result(run)


def is_context_overflow_error(error: object) -> bool:
    """Return True if an error says that a request was too long for its model.

    The error is an exception, a text, or a mapping as a provider sends it. (NeuroLink, Error
    Detection)
    """
    return _name_overflow(error) is not None


def get_context_overflow_provider(error: object) -> str | None:
    """Return the provider in whose words an error says so, or None."""
    return _name_overflow(error) or None


def _name_overflow(error: object) -> str | None:
    """Return the provider whose message for an overflow stands in an error or one of its causes.

    An empty string for an overflow of an unknown provider, None for any other error.
    """
    for _ in range(MAX_CAUSES):
        texts = (str(part) for part in (error, getattr(error, "body", None)) if part)
        provider = overflow.find_overflow_provider(" ".join(texts))
        if provider is not None or isinstance(error, ContextOverflow):
            return "" if provider in (None, "unknown") else provider
        if isinstance(error, Mapping):
            error = error.get("cause")
        else:
            error = getattr(error, "__cause__", None)
    return None


def _load_nonempty_context(
    session_id: UUID | str, *, provider: str = "", model: str = ""
) -> SessionContext | None:
    context = session_context.load_session_context(
        UUID(str(session_id)), provider=provider, model=model
    )
    if context is None or not context.facts.message_count:
        return None
    return context


def _build_overrides(policy: Policy, config: CompactionConfig) -> dict[str, object]:
    """Return the changes to a policy in the form that policies are stored in."""
    groups: dict[str, dict[str, object]] = {}
    switches: dict[str, bool] = {}
    for name, value in config.items():
        if name in KNOB_PATHS:
            group, knob = KNOB_PATHS[name]
            groups.setdefault(group, {})[knob] = value
        elif name in STAGE_SWITCHES:
            switches[STAGE_SWITCHES[name]] = bool(value)
    summary_model = _name_summary_model(config)
    if summary_model:
        groups["summary"] = {"model": summary_model}
    if "keep_recent_ratio" in config:
        groups["protect"] |= {"kind": "count_ratio", "minimum": MIN_RECENT_MESSAGES}
    if switches:
        return {**groups, "stages": _switch_stages(policy.stages, switches)}
    return {**groups}


def _name_summary_model(config: CompactionConfig) -> str:
    """Return the model that writes the summary as `provider/name`, or an empty text.

    Raises TypeError for a provider without a model.
    """
    names = (config.get("summarization_provider"), config.get("summarization_model"))
    if names[0] and not names[1]:
        raise TypeError("summarization_provider needs a summarization_model")
    return "/".join(name for name in names if name)


def _switch_stages(stages: Sequence[str], switches: Mapping[str, bool]) -> list[str]:
    """Return the stages without those that are off and with those that are on.

    The policy's order holds as long as no stage is added; then all stand in the usual order.
    """
    remaining_stages = [stage for stage in stages if switches.get(stage, True)]
    added_stages = [
        stage for stage in USUAL_ORDER if switches.get(stage) and stage not in remaining_stages
    ]
    if not added_stages:
        return remaining_stages
    active_stages = {*remaining_stages, *added_stages}
    return sorted(active_stages, key=[*USUAL_ORDER, *active_stages].index)


def _build_result(run: CompactionRun) -> CompactionResult:
    facts = load_session_facts(run.session_id)
    transcript = load_transcript(facts) if facts else None
    tokens_before = run.tokens_before or 0
    tokens_after = run.tokens_after or 0
    return CompactionResult(
        compacted=run.status == CompactionRun.Status.APPLIED,
        stages_used=tuple(run.stages_used),
        tokens_before=tokens_before,
        tokens_after=tokens_after,
        tokens_saved=tokens_before - tokens_after,
        messages=transcript.entries if transcript else (),
        summary=transcript.summary if transcript else None,
        reason=run.reason,
        run=run.pk,
    )
