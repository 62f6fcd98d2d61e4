"""A policy: all a compaction can be told to do differently, as plain, validated data in groups."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction.core.groups import conduct, size, summaries
from compaction.core.groups import stages as groups_stages
from compaction.core.knobs import KnobGroup, PolicyError, check_choices

STAGES = (
    "strip_images",
    "prune_tool_outputs",
    "dedupe_file_reads",
    "excerpt",
    "summarize",
    "slide_window",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """All groups together, and the stages in the order they run."""

    window: size.WindowKnobs
    budget: size.BudgetKnobs
    trigger: size.TriggerKnobs
    estimate: size.EstimateKnobs
    protect: groups_stages.ProtectKnobs
    stages: tuple[str, ...]
    strip: groups_stages.StripKnobs
    prune: groups_stages.PruneKnobs
    dedupe: groups_stages.DedupeKnobs
    excerpt: groups_stages.ExcerptKnobs
    slide: groups_stages.SlideKnobs
    summary: summaries.SummaryKnobs
    state: summaries.StateKnobs
    memory: summaries.MemoryKnobs
    inject: summaries.InjectKnobs
    target: conduct.TargetKnobs
    tool_result: conduct.ToolResultKnobs
    files: conduct.FilesKnobs
    fallback: conduct.FallbackKnobs
    overflow: conduct.OverflowKnobs
    flow: conduct.FlowKnobs

    def __post_init__(self) -> None:
        complaint = check_choices(*STAGES)(self.stages) or (
            None if self.stages else "must name at least one stage"
        )
        if complaint:
            raise PolicyError("stages", complaint)
        threshold = self.trigger.threshold
        if self.protect.kind == "token_ratio" and self.protect.ratio >= threshold:
            raise PolicyError(
                "protect.ratio",
                f"must be below trigger.threshold ({threshold}), not {self.protect.ratio}",
            )
        if self.target.ratio is not None and self.target.ratio >= threshold:
            raise PolicyError(
                "target.ratio",
                f"must be below trigger.threshold ({threshold}), not {self.target.ratio}",
            )
        if self.summary.min_words > self.summary.max_words:
            raise PolicyError(
                "summary.min_words",
                f"must not be above summary.max_words ({self.summary.max_words})",
            )
        if self.memory.fold > self.memory.entries:
            raise PolicyError(
                "memory.fold", f"must not be above memory.entries ({self.memory.entries})"
            )

    @classmethod
    def parse(cls, overrides: Mapping[str, Any], base: "Policy") -> "Policy":
        """`base` with overrides, as JSON gives them: `{"trigger": {"threshold": 0.8}}`. Raises PolicyError naming the field."""
        changes: dict[str, Any] = {}
        for name, value in _require_known_names(overrides, base, prefix="").items():
            group = getattr(base, name)
            changes[name] = (
                _override_group(group, value)
                if isinstance(group, KnobGroup)
                else _freeze_value(value)
            )
        return dataclasses.replace(base, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The policy as JSON holds it; `parse` reads it back."""
        return {
            name: _unfreeze_value(knob_value)
            for name, knob_value in dataclasses.asdict(self).items()
        }


def _override_group(base: KnobGroup, overrides: Any) -> KnobGroup:
    values = _require_known_names(overrides, base, prefix=f"{base.prefix}.")
    return dataclasses.replace(
        base, **{name: _freeze_value(value) for name, value in values.items()}
    )  # type: ignore[type-var]


def _require_known_names(overrides: Any, base: Any, *, prefix: str) -> Mapping[str, Any]:
    if not isinstance(overrides, Mapping):
        raise PolicyError(
            prefix.rstrip(".") or "policy", f"must be an object of knobs, not {overrides!r}"
        )
    names = [knob_field.name for knob_field in dataclasses.fields(base)]
    for name in overrides:
        if name not in names:
            raise PolicyError(f"{prefix}{name}", f"is not known; there are {', '.join(names)}")
    return overrides


def _freeze_value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _unfreeze_value(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _unfreeze_value(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
