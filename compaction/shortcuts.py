"""Compaction in a few calls, for programs that embed Chatcore: how full a session is, whether it should be compacted, and doing it.

`docs/embedding.md` shows them at work. Each asks the database: in asynchronous code, call them through `sync_to_async`.
"""

from dataclasses import dataclass
from typing import Any, TypedDict, Unpack
from uuid import UUID

from compaction.backends import registry as backend_registry
from compaction.core.budget_check import (
    BudgetCheck,
    check_context_budget,
    estimate_messages_tokens,
    estimate_tokens,
)
from compaction.core.excerpts import truncate_to_token_budget
from compaction.core.policy import STAGES, Policy
from compaction.core.transcript import TranscriptEntry
from compaction.models import CompactionRun
from compaction.runs import engine, queue
from compaction.sizing import request_size, session_context
from compaction.sizing.session_context import SessionContext

__all__ = [
    "BudgetCheck",
    "CompactionConfig",
    "CompactionResult",
    "ContextStats",
    "check_context_budget",
    "compact_session",
    "estimate_messages_tokens",
    "estimate_tokens",
    "get_context_stats",
    "needs_compaction",
    "truncate_to_token_budget",
]

MIN_RECENT_MESSAGES = 4  # messages that keep_recent_ratio keeps at least


class CompactionConfig(TypedDict, total=False):
    """What to do otherwise than the session's policy says, in NeuroLink's names; `policy` is the name of another one to start from."""

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
    summarization_model: str


STAGE_SWITCHES = {
    "enable_prune": "prune_tool_outputs",
    "enable_deduplicate": "dedupe_file_reads",
    "enable_summarize": "summarize",
    "enable_truncate": "slide_window",
}
KNOB_PATHS = {
    "prune_protect_tokens": ("prune", "protect_tokens"),
    "prune_minimum_savings": ("prune", "minimum_savings"),
    "prune_protected_tools": ("prune", "protected_tools"),
    "keep_recent_ratio": ("protect", "ratio"),
    "truncation_fraction": ("slide", "fraction"),
    "summarization_model": ("summary", "model"),
}


@dataclass(frozen=True, kw_only=True)
class ContextStats:
    """How full a session's context is, in tokens; None where its model's window is unknown."""

    estimated_input_tokens: int
    available_input_tokens: int | None
    usage_ratio: float | None
    should_compact: bool
    message_count: int


@dataclass(frozen=True, kw_only=True)
class CompactionResult:
    """What came of it. `messages` are those that are sent from now on, `summary` stands for the others; `reason`: why nothing was done."""

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    messages: tuple[TranscriptEntry, ...]
    summary: str | None
    reason: str
    run: UUID


def get_context_stats(session_id: UUID | str) -> ContextStats | None:
    """How full the session's context is. None when there is no such session, or nothing was said in it."""
    context = _load_nonempty_context(session_id)
    if context is None:
        return None
    tokens, budget = request_size.measure_next_request(context).tokens, context.budget
    return ContextStats(
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input if budget else None,
        usage_ratio=tokens / max(1, budget.input) if budget else None,
        should_compact=bool(budget and budget.is_over(tokens)),
        message_count=context.facts.message_count,
    )


def needs_compaction(session_id: UUID | str) -> bool:
    """Whether the session's context is over its threshold; not when there is no such session or its window is unknown."""
    stats = get_context_stats(session_id)
    return stats is not None and stats.should_compact


def compact_session(
    session_id: UUID | str, **config: Unpack[CompactionConfig]
) -> CompactionResult | None:
    """Compact the session now, whatever its size, and wait for it. None when there is no such session, or nothing was said in it.

    Raises TypeError for an unknown name, PolicyError for a value that cannot be, UnknownPolicy, and RunIsOpen when another run of the
    session does not end within a minute. A summary that fails is no exception but a result that says so.
    """
    if unknown_names := config.keys() - CompactionConfig.__annotations__:
        raise TypeError(f"compact_session takes no {', '.join(sorted(unknown_names))}")
    context = _load_nonempty_context(session_id)
    if context is None:
        return None
    options: queue.RunOptions = {"policy": config.get("policy")}
    options["overrides"] = _build_overrides(
        queue.load_run_context(context.facts.session_id, options).policy, config
    )
    return _build_result(
        engine.compact_now(
            context.facts.session_id, trigger=CompactionRun.Trigger.MANUAL, **options
        )
    )


def _load_nonempty_context(session_id: UUID | str) -> SessionContext | None:
    context = session_context.load_session_context(UUID(str(session_id)))
    return context if context and context.facts.message_count else None


def _build_overrides(policy: Policy, config: CompactionConfig) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for name, value in config.items():
        if name in KNOB_PATHS:
            group, knob = KNOB_PATHS[name]
            overrides.setdefault(group, {})[knob] = value
    if "keep_recent_ratio" in config:
        overrides["protect"] |= {"kind": "count_ratio", "minimum": MIN_RECENT_MESSAGES}
    stage_switches = {
        STAGE_SWITCHES[name]: value for name, value in config.items() if name in STAGE_SWITCHES
    }
    if stage_switches:
        stages = [stage for stage in policy.stages if stage_switches.get(stage, True)]
        extra_stages = [
            stage for stage in STAGES if stage_switches.get(stage) and stage not in stages
        ]
        overrides["stages"] = (
            [stage for stage in STAGES if stage in {*stages, *extra_stages}]
            if extra_stages
            else stages
        )
    return overrides


def _build_result(run: CompactionRun) -> CompactionResult:
    backend = backend_registry.get_backend()
    facts = backend.load_session_facts(run.session_id)
    transcript = backend.load_transcript(facts) if facts else None
    tokens_before, tokens_after = run.tokens_before or 0, run.tokens_after or 0
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
