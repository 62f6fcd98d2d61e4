"""How policies with settings of systems are carried out."""

from collections.abc import Callable

from compaction.core.budget import Budget
from compaction.core.outcome import Outcome
from compaction.core.pass_context import PassContext
from compaction.core.pipeline import compact_old_messages
from compaction.core.policy import Policy
from compaction.core.systems import Traits, register_system
from compaction.core.transcript import Transcript
from compaction.systems.kit import budget
from compaction.systems.kit.outputs import truncate_output
from compaction.systems.kit.pipeline import compact_in_stages
from compaction.systems.kit.settings import (
    ConductKnobs,
    InjectKnobs,
    TailKnobs,
    TargetKnobs,
    WritingKnobs,
)


class Kit:
    """The system of all policies: what they do is in their settings (`core.systems.System`)."""

    plan: Callable[..., Budget | None] = staticmethod(budget.plan)

    def compact(self, transcript: Transcript, pass_context: PassContext) -> Outcome | None:
        """Run the policy's stages, or the core's pass where that is all it needs."""
        if _needs_stages(pass_context.policy):
            return compact_in_stages(transcript, pass_context)
        return compact_old_messages(transcript, pass_context)

    def describe_traits(self, policy: Policy) -> Traits:
        """Return how summaries are written and placed, and what happens around a run."""
        writing, inject = policy.get(WritingKnobs), policy.get(InjectKnobs)
        conduct = policy.get(ConductKnobs)
        return Traits(
            template=writing.template,
            includes_tool=writing.includes_tool,
            reads_originals=writing.source == "originals",
            merges_parts=writing.merging == "parts",
            chunk_chars=writing.chunk_chars,
            rollup_tokens=writing.rollup_tokens,
            waits=writing.backoff,
            retries_run=writing.retry == "run",
            place=inject.place,
            heading=inject.heading,
            nudge=inject.nudge,
            failure_nudge=inject.failure_nudge,
            waits_for_run=conduct.while_compacting == "wait",
            logs_requests=conduct.log_requests,
            has_runtime_hint=conduct.runtime_hint,
        )

    def describe_tail(self, policy: Policy) -> str:
        """Return the protected tail in words; empty if it is a share of the window."""
        tail = policy.get(TailKnobs)
        texts = {
            "count": f"last {tail.count}",
            "count_ratio": (
                f"newest {policy.protect.ratio:.0%} of messages, at least {tail.minimum}"
            ),
            "per_role": f"last {tail.count} of each role",
            "user_turns": f"last {tail.count} user turns",
        }
        suffix = f", first {tail.first}" if tail.first else ""
        return texts[tail.kind] + suffix if tail.replaces_tail else ""

    def truncate_output(self, text: str, policy: Policy) -> tuple[str, int | None]:
        """Return what is kept of a tool's output, and its full length if it was cut."""
        result = truncate_output(text, policy)
        return result.content, result.original_chars

    def list_shares(self, policy: Policy, factor: float) -> dict[str, dict[str, float]]:
        """Return the target times a factor, if it is a share of the window."""
        ratio = policy.get(TargetKnobs).ratio
        return {} if ratio is None else {"target": {"ratio": ratio * factor}}


def _needs_stages(policy: Policy) -> bool:
    """Return whether a policy asks for more than one summary of what is older than its tail."""
    tail = policy.get(TailKnobs)
    return (
        policy.stages != ("summarize",)
        or tail.replaces_tail
        or tail.first > 0
        or policy.get(WritingKnobs).source != "shown"
    )


register_system(Kit())
