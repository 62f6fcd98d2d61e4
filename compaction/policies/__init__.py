"""Find the policy of a session: its own, else its model's, else the project's, else oneclaw."""

import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache, lru_cache
from typing import Any

from django.apps import apps
from django.conf import settings

from chatcore.base.stored_settings import read_stored
from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError, list_knobs
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW, PRESETS
from compaction.core.systems import MISSING, find_system, require_parts
from compaction.models import CompactionPolicy

logger = logging.getLogger(__name__)

DEFAULT_POLICY = "oneclaw"
MEMORY_APP = "compaction.memory"


class UnknownPolicy(Exception):
    """There is neither a preset nor a stored policy of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no compaction policy named {name!r}.")
        self.name = name


@cache
def has_memory() -> bool:
    """Return True if the app of memory is installed."""
    return apps.is_installed(MEMORY_APP)


def limit_policy(policy: Policy) -> Policy:
    """Return what can be done of a policy: nothing that the absent app of memory does.

    Raises PolicyError where its fallback is that of an absent system.
    """
    require_parts(policy)
    return policy if has_memory() else policy.without_memory()


def load_policy(name: str) -> Policy:
    """Return the preset or the stored policy of this name.

    Raises UnknownPolicy, and PolicyError if a stored policy is no longer valid.
    """
    if name in PRESETS:
        return _get_preset(name)
    row = CompactionPolicy.objects.filter(name=name, is_active=True).first()
    if row is None:
        raise UnknownPolicy(name)
    return read_row(row)


def read_row(row: CompactionPolicy) -> Policy:
    """Return a stored policy. Raises PolicyError if it is no longer valid, or not here."""
    if row.base not in PRESETS:
        raise PolicyError("base", f"is {row.base!r}, a preset that is not installed")
    return limit_policy(Policy.parse(row.overrides, PRESETS[row.base]))


@cache
def _get_preset(name: str) -> Policy:
    """Return a preset as it can act. Without memory, `chatcore` is `oneclaw`."""
    if name == "chatcore" and not has_memory():
        name = DEFAULT_POLICY
    return limit_policy(PRESETS[name])


def choose_policy(*names: str) -> tuple[str, Policy]:
    """Return the name and policy of the first name that is set and usable.

    After these names come the project's policy and oneclaw. A policy that cannot be used must not
    stop a conversation, so it is skipped with a warning in the log.
    """
    for name in _continue_names(names):
        if not name:
            continue
        try:
            return name, load_policy(name)
        except (UnknownPolicy, PolicyError) as error:
            logger.warning("compaction policy skipped: %s", error)
    return DEFAULT_POLICY, _get_preset(DEFAULT_POLICY)


def _continue_names(names: Iterable[str]) -> Iterator[str]:
    yield from names
    yield get_project_policy()  # which is not asked for where another one is usable


def get_project_policy() -> str:
    """Return the name of the policy that settings or staff put in place of oneclaw, or ""."""
    return settings.COMPACTION.get("POLICY") or read_stored("policy")


@dataclass(frozen=True, kw_only=True)
class Flow:
    """How runs are worked on: what the policy says, else the project."""

    workers: int
    """Runs of one policy that are worked on at once."""
    lease_seconds: int
    """Seconds without a sign of life after which another worker may take over."""
    attempts: int
    """Deaths of workers after which a run has failed."""


FLOW_DEFAULTS = {"WORKERS": 2, "LEASE_SECONDS": 300, "ATTEMPTS": 3}


def read_flow(policy: Policy) -> Flow:
    """Return how runs of a policy are worked on."""
    project = FLOW_DEFAULTS | settings.COMPACTION
    return Flow(
        workers=policy.flow.workers or project["WORKERS"],
        lease_seconds=policy.flow.lease_seconds or project["LEASE_SECONDS"],
        attempts=policy.flow.attempts or project["ATTEMPTS"],
    )


def apply_threshold(policy: Policy, threshold: float) -> Policy:
    """Return the policy with this threshold, a share of the input budget, if it can use it."""
    try:
        return Policy.parse({"trigger": {"threshold": threshold}}, policy)
    except PolicyError as error:
        logger.warning("a session's threshold was skipped: %s", error)
        return policy


def is_compaction_automatic() -> bool:
    """Return True if the settings allow runs that no user has requested."""
    return bool(settings.COMPACTION.get("AUTOMATIC", True))


def get_project_threshold() -> float | int | None:
    """Return what the settings put in place of every policy's threshold: a share, or tokens."""
    threshold: float | int | None = settings.COMPACTION.get("THRESHOLD")
    return threshold


def apply_token_threshold(policy: Policy, token_threshold: int, budget: Budget) -> Policy:
    """Return the policy with this number of tokens as its threshold, if it is not above the budget.

    The protected tail and the target shrink with the threshold.
    """
    if token_threshold >= min(budget.input, budget.request_limit):
        return policy
    # The threshold is stored as a share and rounded down to tokens. Half a token in the direction
    # of the comparison keeps it at the number that was named.
    rounding_margin = Decimal("0.5") if budget.is_strict else Decimal("-0.5")
    threshold = float((token_threshold + rounding_margin) / budget.basis)
    factor = min(1.0, threshold / policy.trigger.threshold)
    ratios = {"protect": {"ratio": policy.protect.ratio * factor}}
    system = find_system(policy)
    if system:
        ratios |= system.list_shares(policy, factor)
    return Policy.parse({**ratios, "trigger": {"threshold": threshold}}, policy)


def resolve_summary_model(model_name: str) -> str:
    """Return the name of the model that writes a policy's summaries.

    For `same` this is the model that the settings name for summaries, if they name one.
    """
    if model_name != "same":
        return model_name
    return settings.COMPACTION.get("SUMMARY_MODEL") or model_name


def list_policies() -> dict[str, Policy]:
    """Return every usable policy by its name: the presets, then the stored ones in order."""
    policies_by_name = {name: _get_preset(name) for name in PRESETS}
    for row in CompactionPolicy.objects.filter(is_active=True).order_by("name"):
        try:
            policies_by_name.setdefault(row.name, read_row(row))
        except PolicyError as error:
            logger.warning("compaction policy %s left out: %s", row.name, error)
    return policies_by_name


def parse_policy_snapshot(snapshot: Mapping[str, object]) -> Policy:
    """Return the policy as it was when a run was requested. Raises PolicyError."""
    return _parse_snapshot_text(json.dumps(snapshot))


# A run needs its policy several times: for its claim, its lease and itself.
@lru_cache(maxsize=16)
def _parse_snapshot_text(text: str) -> Policy:
    return limit_policy(Policy.parse(_leave_out_absent(json.loads(text)), ONECLAW))


def list_settings() -> dict[str, set[str]]:
    """Return the names of the settings that policies have here, by their groups."""
    known: dict[str, set[str]] = {}
    for group in ONECLAW.list_groups():
        known.setdefault(group.prefix, set()).update(each.name for each in list_knobs(type(group)))
    return known


def _leave_out_absent(snapshot: dict[str, Any]) -> dict[str, Any]:
    """Return a snapshot without what systems declare that are no longer installed.

    A snapshot has all settings, also those that its policy left as they are. Raises PolicyError if
    the run needs one of those systems.
    """
    known = list_settings()
    kept: dict[str, Any] = {}
    for name, values in snapshot.items():
        if not isinstance(values, dict):
            kept[name] = values
            continue
        for setting, value in values.items():
            if setting in known.get(name, ()):
                kept.setdefault(name, {})[setting] = value
            elif _NEUTRAL.get(f"{name}.{setting}", value) != value:
                raise PolicyError(f"{name}.{setting}", MISSING)
    return kept


# What a run has that the core alone can execute.
_NEUTRAL = {"protect.kind": "token_ratio", "protect.first": 0, "summary.source": "shown"}
