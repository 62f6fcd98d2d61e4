"""A policy: everything about compaction that can be configured, as validated data in groups."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from compaction.core import knobs
from compaction.core.counter import EstimateKnobs
from compaction.core.knobs import KnobGroup, PolicyError, list_knobs
from compaction.core.rules import require_selection

Group = TypeVar("Group", bound=KnobGroup)

STAGES = ["summarize"]
"""The stages that a policy may name; the systems add theirs."""

# What `oneclaw` and `chatcore` use, and what a policy of one's own mostly sets. (Those of one group
# stand together.)
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

    Without arguments it is `oneclaw`. Every knob is described in docs/policies.md. Creating a
    policy with a wrong value raises PolicyError, which names the knob.
    """

    trigger: knobs.TriggerKnobs = field(default_factory=knobs.TriggerKnobs)
    estimate: EstimateKnobs = field(default_factory=EstimateKnobs)
    protect: knobs.ProtectKnobs = field(default_factory=knobs.ProtectKnobs)
    stages: tuple[str, ...] = ("summarize",)
    summary: knobs.SummaryKnobs = field(default_factory=knobs.SummaryKnobs)
    ledger: knobs.LedgerKnobs = field(default_factory=knobs.LedgerKnobs)
    recall: knobs.RecallKnobs = field(default_factory=knobs.RecallKnobs)
    verify: knobs.VerifyKnobs = field(default_factory=knobs.VerifyKnobs)
    tool_result: knobs.ToolResultKnobs = field(default_factory=knobs.ToolResultKnobs)
    files: knobs.FilesKnobs = field(default_factory=knobs.FilesKnobs)
    fallback: knobs.FallbackKnobs = field(default_factory=knobs.FallbackKnobs)
    overflow: knobs.OverflowKnobs = field(default_factory=knobs.OverflowKnobs)
    flow: knobs.FlowKnobs = field(default_factory=knobs.FlowKnobs)
    others: Mapping[type[KnobGroup], KnobGroup] = field(default_factory=dict)
    """What systems declare, without the groups that have their defaults; `get` reads them."""

    def __post_init__(self) -> None:
        complaint = require_selection(tuple(STAGES)).find_complaint(self.stages)
        if complaint or not self.stages:
            raise PolicyError("stages", complaint or "must name at least one stage")
        for group in self.list_groups():
            group.check(self)

    @classmethod
    def parse(cls, overrides: Mapping[str, object], base: "Policy") -> "Policy":
        """Return `base` with overrides as JSON has them: `{"trigger": {"threshold": 0.8}}`.

        This is the one reader of stored policies, snapshots, options of runs and setup documents.
        Raises PolicyError, which names the knob that is unknown or has a wrong value.
        """
        overrides = _require_mapping(overrides, "policy")
        groups = list(base.list_groups())
        prefixes = {"stages", *(group.prefix for group in groups)}
        for name in overrides:
            _require_name(name, prefixes)
        changes: dict[str, Any] = {}
        others: dict[type[KnobGroup], KnobGroup] = {}
        if "stages" in overrides:
            changes["stages"] = _freeze_value(overrides["stages"])
        for prefix in prefixes & overrides.keys() - {"stages"}:
            namesakes = [group for group in groups if group.prefix == prefix]
            values = _require_mapping(overrides[prefix], prefix)
            known_names = [each.name for group in namesakes for each in list_knobs(type(group))]
            for name in values:
                _require_name(name, known_names, f"{prefix}.")
            for group in namesakes:
                names = [each.name for each in list_knobs(type(group)) if each.name in values]
                new_values = {name: _freeze_value(values[name]) for name in names}
                if new_values and type(group) in knobs.OTHER_GROUPS:
                    others[type(group)] = _replace(group, new_values)
                elif new_values:
                    changes[prefix] = _replace(group, new_values)
        if others:
            merged = {**base.others, **others}
            changes["others"] = {
                kind: group for kind, group in merged.items() if group != knobs.OTHER_GROUPS[kind]
            }
        return dataclasses.replace(base, **changes)

    def get(self, kind: type[Group]) -> Group:
        """Return a group that a system declares, with its defaults where nothing is set."""
        return cast("Group", self.others.get(kind) or knobs.OTHER_GROUPS[kind])

    def list_groups(self) -> Iterator[KnobGroup]:
        """Yield the groups of the core, then those of the systems that are installed."""
        for each in dataclasses.fields(self):
            group = getattr(self, each.name)
            if isinstance(group, KnobGroup):
                yield group
        yield from map(self.get, knobs.OTHER_GROUPS)

    def list_foreign(self) -> list[str]:
        """Return the names of the settings that systems declare and that this policy sets."""
        names = [
            f"{group.prefix}.{each.name}"
            for kind, group in self.others.items()
            for each in list_knobs(kind)
            if getattr(group, each.name) != getattr(knobs.OTHER_GROUPS[kind], each.name)
        ]
        return sorted([*names, *(["stages"] if self.stages != ("summarize",) else [])])

    def without_memory(self) -> "Policy":
        """Return the policy with nothing in it that the app of memory does."""
        return dataclasses.replace(
            self,
            ledger=dataclasses.replace(self.ledger, ratio=0),
            recall=dataclasses.replace(self.recall, tokens=0),
            verify=knobs.VerifyKnobs(),
            summary=dataclasses.replace(self.summary, spans="rewritten"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the whole policy as JSON has it; `parse` reads it back."""
        document: dict[str, Any] = {"stages": list(self.stages)}
        for group in self.list_groups():
            values = dataclasses.asdict(group)  # type: ignore[call-overload]  # a dataclass
            document.setdefault(group.prefix, {}).update(_unfreeze_value(values))
        return document


def _replace(group: KnobGroup, values: Mapping[str, object]) -> KnobGroup:
    return dataclasses.replace(group, **values)  # type: ignore[type-var]  # a group is a dataclass


def _require_mapping(value: object, name: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise PolicyError(name, f"must be an object of knobs, not {value!r}")
    return value


def _require_name(name: str, known_names: Iterable[str], prefix: str = "") -> None:
    if name not in known_names:
        names = ", ".join(sorted(known_names))
        raise PolicyError(f"{prefix}{name}", f"is not known here; there are {names}")


def _freeze_value(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _unfreeze_value(value: object) -> object:
    if isinstance(value, dict):
        return {name: _unfreeze_value(item) for name, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
