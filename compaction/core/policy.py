"""A policy: all a compaction can be told to do differently, as plain, validated data in groups."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from compaction.core.knobs import Group, PolicyError, flag, knob, one_of, positive, ratio, some_of, whole, words

__all__ = ["Policy", "PolicyError"]

PHASES = ("after_response", "before_request", "on_model_change", "on_overflow", "manual")
STAGES = ("summarize",)


def _window_or_disable(value: Any) -> str | None:
    complaint = None if value == "disable" else whole(1)(value)
    return complaint and f'must be "disable" or a number of tokens above zero, not {value!r}'


@dataclass(frozen=True, kw_only=True, slots=True)
class Window(Group):
    """The model's context window, in tokens; `unknown` is what to take where the model does not say."""

    prefix: ClassVar[str] = "window"
    unknown: int | Literal["disable"] = knob(_window_or_disable)


@dataclass(frozen=True, kw_only=True, slots=True)
class Trigger(Group):
    """When to act: at which share of the window (`strict`: above it, equal is not over), and at which moments."""

    prefix: ClassVar[str] = "trigger"
    threshold: float = knob(ratio)
    strict: bool = knob(flag)
    phases: tuple[str, ...] = knob(some_of(*PHASES))


@dataclass(frozen=True, kw_only=True, slots=True)
class Estimate(Group):
    """How to count what no provider has counted; `calibration` says whether the last call's real count corrects it."""

    prefix: ClassVar[str] = "estimate"
    chars_per_token: float = knob(positive)
    calibration: Literal["last_usage", "none"] = knob(one_of("last_usage", "none"))


@dataclass(frozen=True, kw_only=True, slots=True)
class Protect(Group):
    """The newest messages that stay as they are: whole ones, within this share of the window."""

    prefix: ClassVar[str] = "protect"
    ratio: float = knob(ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class Summary(Group):
    """What the summarizer is asked for, and how many more calls a failed one gets."""

    prefix: ClassVar[str] = "summary"
    max_tokens: int = knob(whole(1))
    min_words: int = knob(whole(1))
    max_words: int = knob(whole(1))
    retries: int = knob(whole(0))


@dataclass(frozen=True, kw_only=True, slots=True)
class Fallback(Group):
    """After a failure the oldest messages are dropped from the request only, and the user is told so."""

    prefix: ClassVar[str] = "fallback"
    notice: str = knob(words)


@dataclass(frozen=True, kw_only=True, slots=True)
class Overflow(Group):
    """After the provider refused a request for its length: the share of the window to come down to."""

    prefix: ClassVar[str] = "overflow"
    recovery_ratio: float = knob(ratio)


@dataclass(frozen=True, kw_only=True, slots=True)
class Flow(Group):
    """How long a worker holds a run, in seconds, and how often a run may be claimed."""

    prefix: ClassVar[str] = "flow"
    lease_seconds: int = knob(whole(1))
    attempts: int = knob(whole(1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """All groups together, and the stages in the order they run."""

    window: Window
    trigger: Trigger
    estimate: Estimate
    protect: Protect
    stages: tuple[str, ...]
    summary: Summary
    fallback: Fallback
    overflow: Overflow
    flow: Flow

    def __post_init__(self) -> None:
        complaint = some_of(*STAGES)(self.stages) or (None if self.stages else "must name at least one stage")
        if complaint:
            raise PolicyError("stages", complaint)
        if self.protect.ratio >= self.trigger.threshold:
            raise PolicyError("protect.ratio", f"must be below trigger.threshold ({self.trigger.threshold}), not {self.protect.ratio}")
        if self.summary.min_words > self.summary.max_words:
            raise PolicyError("summary.min_words", f"must not be above summary.max_words ({self.summary.max_words})")

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
        raise PolicyError(prefix.rstrip(".") or "policy", f"must be an object of knobs, not {overrides!r}")
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
