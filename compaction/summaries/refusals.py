"""Why an answer of a summary model is not used, and how often that happens."""

from compaction.backends import registry as backend_registry
from compaction.core.stages.base import SummaryFailed
from compaction.summaries.verification import UntrueSummary


class SummaryMissing(SummaryFailed):
    """An answer that holds the delta of the structured state and no summary."""

    def __init__(self, delta_block: str) -> None:
        super().__init__("The model wrote only how the state changes, and no summary.")
        self.delta_block = delta_block


class NoAnswer(SummaryFailed):
    """The model did not answer at all."""


REASONS: dict[type[SummaryFailed], str] = {
    NoAnswer: "no_answer",
    SummaryMissing: "state_only",
    UntrueSummary: "untrue",
}


def count_refusal(error: SummaryFailed) -> None:
    """Count an answer that is not used, for those who watch the host."""
    reason = REASONS.get(type(error), "nonsense")
    backend_registry.get_backend().count_refused_summary(reason)
