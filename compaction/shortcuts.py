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
from compaction.core.transcript import Entry
from compaction.models import CompactionRun
from compaction.runs import engine, queue
from compaction.sizing import session_context
from compaction.sizing.session_context import Situation

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

FEWEST_RECENT = 4  # messages that keep_recent_ratio keeps at least


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


SWITCHES = {
    "enable_prune": "prune_tool_outputs",
    "enable_deduplicate": "dedupe_file_reads",
    "enable_summarize": "summarize",
    "enable_truncate": "slide_window",
}
KNOBS = {
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
    messages: tuple[Entry, ...]
    summary: str | None
    reason: str
    run: UUID


def get_context_stats(session_id: UUID | str) -> ContextStats | None:
    """How full the session's context is. None when there is no such session, or nothing was said in it."""
    now = _standing(session_id)
    if now is None:
        return None
    tokens, budget = session_context.quick_measure(now).tokens, now.budget
    return ContextStats(
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input if budget else None,
        usage_ratio=tokens / max(1, budget.input) if budget else None,
        should_compact=bool(budget and budget.over(tokens)),
        message_count=now.subject.message_count,
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
    if unknown := config.keys() - CompactionConfig.__annotations__:
        raise TypeError(f"compact_session takes no {', '.join(sorted(unknown))}")
    now = _standing(session_id)
    if now is None:
        return None
    wishes: queue.Wishes = {"policy": config.get("policy")}
    wishes["overrides"] = _overrides(queue.standing(now.subject.session_id, wishes).policy, config)
    return _result(
        engine.compact_now(now.subject.session_id, trigger=CompactionRun.Trigger.MANUAL, **wishes)
    )


def _standing(session_id: UUID | str) -> Situation | None:
    now = session_context.of(UUID(str(session_id)))
    return now if now and now.subject.message_count else None


def _overrides(policy: Policy, config: CompactionConfig) -> dict[str, Any]:
    overrides: dict[str, Any] = {}
    for name, value in config.items():
        if name in KNOBS:
            group, knob = KNOBS[name]
            overrides.setdefault(group, {})[knob] = value
    if "keep_recent_ratio" in config:
        overrides["protect"] |= {"kind": "count_ratio", "minimum": FEWEST_RECENT}
    switched = {SWITCHES[name]: value for name, value in config.items() if name in SWITCHES}
    if switched:
        wanted = [stage for stage in policy.stages if switched.get(stage, True)]
        added = [stage for stage in STAGES if switched.get(stage) and stage not in wanted]
        overrides["stages"] = (
            [stage for stage in STAGES if stage in {*wanted, *added}] if added else wanted
        )
    return overrides


def _result(run: CompactionRun) -> CompactionResult:
    backend = backend_registry.get()
    subject = backend.subject(run.session_id)
    sent = backend.load(subject) if subject else None
    before, after = run.tokens_before or 0, run.tokens_after or 0
    return CompactionResult(
        compacted=run.status == CompactionRun.Status.APPLIED,
        stages_used=tuple(run.stages_used),
        tokens_before=before,
        tokens_after=after,
        tokens_saved=before - after,
        messages=sent.entries if sent else (),
        summary=sent.summary if sent else None,
        reason=run.reason,
        run=run.pk,
    )
