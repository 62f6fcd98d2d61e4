"""Find the policy of a session: its own, else its model's, else the project's, else oneclaw."""

import json
import logging
from collections.abc import Mapping
from decimal import Decimal
from functools import cache, lru_cache

from django.apps import apps
from django.conf import settings

from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.systems import require_parts
from compaction.models import CompactionPolicy

logger = logging.getLogger(__name__)

DEFAULT_POLICY = "oneclaw"
MEMORY_APP = "compaction.memory"
LOTA_APP = "compaction.systems.lota"


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
    """Return what can be done of a policy: nothing that the absent app of memory or Lota does.

    Raises PolicyError where that is not enough, because its pass is another system's.
    """
    require_parts(policy)
    if not has_memory():
        policy = policy.without_memory()
    return policy if apps.is_installed(LOTA_APP) else policy.without_state()


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
    for name in (*names, settings.COMPACTION.get("POLICY", "")):
        if not name:
            continue
        try:
            return name, load_policy(name)
        except (UnknownPolicy, PolicyError) as error:
            logger.warning("compaction policy skipped: %s", error)
    return DEFAULT_POLICY, _get_preset(DEFAULT_POLICY)


def apply_threshold(policy: Policy, threshold: float) -> Policy:
    """Return the policy with this threshold, a share of the input budget, if it can use it."""
    try:
        return Policy.parse({"trigger": {"threshold": threshold}}, policy)
    except PolicyError as error:
        logger.warning("a session's threshold was skipped: %s", error)
        return policy


def is_compaction_automatic() -> bool:
    """Return True if the settings allow runs that nobody has requested."""
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
    rounding_margin = Decimal("0.5") if policy.trigger.strict else Decimal("-0.5")
    threshold = float((token_threshold + rounding_margin) / budget.basis)
    factor = min(1.0, threshold / policy.trigger.threshold)
    ratios: dict[str, dict[str, float]] = {"protect": {"ratio": policy.protect.ratio * factor}}
    if policy.target.ratio is not None:
        ratios["target"] = {"ratio": policy.target.ratio * factor}
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
    policy = Policy.parse(json.loads(text), PRESETS[DEFAULT_POLICY])
    return limit_policy(policy)
