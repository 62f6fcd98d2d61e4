"""A policy: everything about compaction that can be configured, as validated data in groups."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction.core import knobs
from compaction.core.knobs import KnobGroup, PolicyError, require_selection

# The names of the table in `pipeline.py`, which cannot be imported here: stages import policies.
STAGES = (
    "strip_images",
    "prune_tool_outputs",
    "dedupe_file_reads",
    "excerpt",
    "summarize",
    "slide_window",
)


# What `oneclaw` and `chatcore` use, and what a policy of one's own mostly sets. All other settings
# are there for the other systems. (Those of one group stand together.)
DEFAULT_SETTINGS = (
    "trigger.threshold",
    "protect.ratio",
    "protect.plans",
    "summary.model",
    "summary.spans",
    "summary.max_tokens",
    "summary.room_ratio",
    "summary.max_words",
    "summary.prompt",
    "summary.retries",
    "summary.timeout",
    "tool_result.limit",
    "tool_result.spill",
    "files.budget_ratio",
    "fallback.notify",
    "fallback.notice",
    "ledger.ratio",
    "recall.tokens",
    "recall.threshold",
    "verify.checks",
    "verify.repair",
    "verify.extract",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """All groups of knobs, and the stages in the order in which they run.

    Every knob is described in docs/policies.md. Creating a policy with a wrong value raises
    PolicyError, which names the knob.
    """

    window: knobs.WindowKnobs
    budget: knobs.BudgetKnobs
    trigger: knobs.TriggerKnobs
    estimate: knobs.EstimateKnobs
    protect: knobs.ProtectKnobs
    stages: tuple[str, ...]
    strip: knobs.StripKnobs
    prune: knobs.PruneKnobs
    dedupe: knobs.DedupeKnobs
    excerpt: knobs.ExcerptKnobs
    slide: knobs.SlideKnobs
    summary: knobs.SummaryKnobs
    state: knobs.StateKnobs
    memory: knobs.MemoryKnobs
    inject: knobs.InjectKnobs
    ledger: knobs.LedgerKnobs
    recall: knobs.RecallKnobs
    verify: knobs.VerifyKnobs
    target: knobs.TargetKnobs
    tool_result: knobs.ToolResultKnobs
    files: knobs.FilesKnobs
    fallback: knobs.FallbackKnobs
    overflow: knobs.OverflowKnobs
    flow: knobs.FlowKnobs

    def __post_init__(self) -> None:
        self._check_stages()
        self._check_ratios()
        if self.summary.min_words > self.summary.max_words:
            maximum = self.summary.max_words
            raise PolicyError(
                "summary.min_words", f"must not be above summary.max_words ({maximum})"
            )
        if self.memory.fold > self.memory.entries:
            maximum = self.memory.entries
            raise PolicyError("memory.fold", f"must not be above memory.entries ({maximum})")

    @classmethod
    def parse(cls, overrides: Mapping[str, object], base: "Policy") -> "Policy":
        """Return `base` with overrides as JSON has them: `{"trigger": {"threshold": 0.8}}`.

        Raises PolicyError, which names the knob that is unknown or has a wrong value.
        """
        changes: dict[str, Any] = {}
        for name, value in _require_known_names(overrides, base, prefix="").items():
            group = getattr(base, name)
            if isinstance(group, KnobGroup):
                changes[name] = _override_group(group, value)
            else:
                changes[name] = _freeze_value(value)
        return dataclasses.replace(base, **changes)

    def without_memory(self) -> "Policy":
        """Return the policy with nothing in it that the app of memory does."""
        return dataclasses.replace(
            self,
            ledger=dataclasses.replace(self.ledger, ratio=0),
            recall=dataclasses.replace(self.recall, tokens=0),
            verify=dataclasses.replace(self.verify, checks=False, repair=False, extract=False),
            summary=dataclasses.replace(self.summary, spans="rewritten"),
        )

    def without_state(self) -> "Policy":
        """Return the policy with nothing in it that the app of Lota does."""
        return dataclasses.replace(
            self,
            summary=dataclasses.replace(self.summary, state_delta=False),
            memory=knobs.MemoryKnobs(entries=0, fold=0),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole policy as JSON has it; `parse` reads it back."""
        return {name: _unfreeze_value(value) for name, value in dataclasses.asdict(self).items()}

    def _check_stages(self) -> None:
        complaint = require_selection(STAGES).find_complaint(self.stages)
        if complaint is None and not self.stages:
            complaint = "must name at least one stage"
        if complaint:
            raise PolicyError("stages", complaint)

    def _check_ratios(self) -> None:
        """Refuse a tail or a target at or above the threshold: a pass could not get below it."""
        threshold = self.trigger.threshold
        expectation = f"must be below trigger.threshold ({threshold})"
        tail_ratio = self.protect.ratio if self.protect.kind == "token_ratio" else None
        if tail_ratio is not None and tail_ratio >= threshold:
            raise PolicyError("protect.ratio", f"{expectation}, not {tail_ratio}")
        if self.target.ratio is not None and self.target.ratio >= threshold:
            raise PolicyError("target.ratio", f"{expectation}, not {self.target.ratio}")


def _override_group(base: KnobGroup, overrides: object) -> KnobGroup:
    values = _require_known_names(overrides, base, prefix=f"{base.prefix}.")
    changes = {name: _freeze_value(value) for name, value in values.items()}
    return dataclasses.replace(base, **changes)  # type: ignore[type-var]  # a group is a dataclass


def _require_known_names(overrides: Any, base: Any, *, prefix: str) -> Mapping[str, object]:
    if not isinstance(overrides, Mapping):
        raise PolicyError(
            prefix.rstrip(".") or "policy", f"must be an object of knobs, not {overrides!r}"
        )
    names = [knob_field.name for knob_field in dataclasses.fields(base)]
    for name in overrides:
        if name not in names:
            raise PolicyError(f"{prefix}{name}", f"is not known; there are {', '.join(names)}")
    return overrides


def _freeze_value(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _unfreeze_value(value: object) -> object:
    if isinstance(value, dict):
        return {name: _unfreeze_value(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
