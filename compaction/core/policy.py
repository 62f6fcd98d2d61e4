"""A policy: all a compaction can be told to do differently, as plain, validated data in groups."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compaction.core.groups import conduct, size, summaries
from compaction.core.groups import stages as groups_stages
from compaction.core.knobs import Group, PolicyError, some_of

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

    window: size.Window
    budget: size.Basis
    trigger: size.Trigger
    estimate: size.Estimate
    protect: groups_stages.Protect
    stages: tuple[str, ...]
    strip: groups_stages.Strip
    prune: groups_stages.Prune
    dedupe: groups_stages.Dedupe
    excerpt: groups_stages.Excerpt
    slide: groups_stages.Slide
    summary: summaries.Summary
    state: summaries.State
    memory: summaries.Memory
    inject: summaries.Inject
    target: conduct.Target
    tool_result: conduct.ToolResult
    files: conduct.Files
    fallback: conduct.Fallback
    overflow: conduct.Overflow
    flow: conduct.Flow

    def __post_init__(self) -> None:
        complaint = some_of(*STAGES)(self.stages) or (
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
        for name, value in _known(overrides, base, prefix="").items():
            group = getattr(base, name)
            changes[name] = _group(group, value) if isinstance(group, Group) else _frozen(value)
        return dataclasses.replace(base, **changes)

    def as_dict(self) -> dict[str, Any]:
        """The policy as JSON holds it; `parse` reads it back."""
        return {name: _plain(value) for name, value in dataclasses.asdict(self).items()}


def _group(base: Group, overrides: Any) -> Group:
    values = _known(overrides, base, prefix=f"{base.prefix}.")
    return dataclasses.replace(base, **{name: _frozen(value) for name, value in values.items()})  # type: ignore[type-var]


def _known(overrides: Any, base: Any, *, prefix: str) -> Mapping[str, Any]:
    if not isinstance(overrides, Mapping):
        raise PolicyError(
            prefix.rstrip(".") or "policy", f"must be an object of knobs, not {overrides!r}"
        )
    names = [each.name for each in dataclasses.fields(base)]
    for name in overrides:
        if name not in names:
            raise PolicyError(f"{prefix}{name}", f"is not known; there are {', '.join(names)}")
    return overrides


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items()}
    return list(value) if isinstance(value, tuple) else value
