"""Which policy applies to a session: its own, else its model's, else the project's, else oneclaw."""

import logging
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError

from compaction.core.budget import Budget
from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy

logger = logging.getLogger(__name__)

DEFAULT_POLICY = "oneclaw"


class UnknownPolicy(Exception):
    """No preset and no stored policy has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"There is no compaction policy named {name!r}.")
        self.name = name


def load_policy(name: str) -> Policy:
    """The preset or stored policy of that name. Raises UnknownPolicy, and PolicyError when a stored one is no longer valid."""
    if name in PRESETS:
        return PRESETS[name]
    row = CompactionPolicy.objects.filter(name=name).first()
    if row is None or row.base not in PRESETS:
        raise UnknownPolicy(name)
    return Policy.parse(row.overrides, PRESETS[row.base])


def choose_policy(*names: str) -> tuple[str, Policy]:
    """The first of these names that is set and can be used, with its policy; then the project's, then oneclaw."""
    for name in (*names, settings.COMPACTION.get("POLICY", "")):
        if not name:
            continue
        try:
            return name, load_policy(name)
        except (UnknownPolicy, PolicyError) as error:
            logger.warning("compaction policy passed over: %s", error)
    return DEFAULT_POLICY, PRESETS[DEFAULT_POLICY]


def apply_threshold(policy: Policy, threshold: float | None) -> Policy:
    """The policy with a session's own threshold; as it is where there is none, or where it cannot be."""
    if threshold is None:
        return policy
    try:
        return Policy.parse({"trigger": {"threshold": threshold}}, policy)
    except PolicyError as error:
        logger.warning("a session's threshold was passed over: %s", error)
        return policy


def is_compaction_automatic() -> bool:
    """Whether the settings let room be made without being asked for."""
    return bool(settings.COMPACTION.get("AUTOMATIC", True))


def get_project_threshold() -> float | None:
    """The share that the settings put in place of every policy's own."""
    threshold = settings.COMPACTION.get("THRESHOLD")
    return threshold if isinstance(threshold, float) else None


def apply_token_threshold(policy: Policy, budget: Budget) -> Policy:
    """The policy that acts at the settings' number of tokens; as it is where they name none, or one that the window does not hold."""
    token_threshold = settings.COMPACTION.get("THRESHOLD")
    if not isinstance(token_threshold, int) or token_threshold >= budget.input:
        return policy
    rounding_margin = (
        Decimal("0.5") if policy.trigger.strict else Decimal("-0.5")
    )  # against the rounding of the share
    return apply_threshold(policy, float((token_threshold + rounding_margin) / budget.basis))


def resolve_summary_model(model_name: str) -> str:
    """Who a policy wants its summaries from; `same` is the settings' choice, where they have one."""
    return (
        (settings.COMPACTION.get("SUMMARY_MODEL") or model_name)
        if model_name == "same"
        else model_name
    )


def validate_threshold_override(threshold: float, *names: str) -> None:
    """Refuse a session's own threshold that the policy it would have (the first of these names that is set) cannot take.

    What CHATCORE["VALIDATE_OVERRIDE"] names. Raises ValidationError, naming the field.
    """
    try:
        Policy.parse({"trigger": {"threshold": threshold}}, choose_policy(*names)[1])
    except PolicyError as error:
        raise ValidationError({"compact_threshold": str(error)}) from None


def list_policies() -> dict[str, Policy]:
    """Every policy by its name, presets first; stored ones that are no longer valid are left out."""
    policies_by_name = dict(PRESETS)
    for row in CompactionPolicy.objects.filter(base__in=PRESETS).order_by("name"):
        try:
            policies_by_name.setdefault(row.name, Policy.parse(row.overrides, PRESETS[row.base]))
        except PolicyError as error:
            logger.warning("compaction policy %s left out: %s", row.name, error)
    return policies_by_name


def parse_policy_snapshot(snapshot: dict[str, Any]) -> Policy:
    """The policy as it was when a run was asked for. Raises PolicyError."""
    return Policy.parse(snapshot, PRESETS[DEFAULT_POLICY])


def validate_policy_row(name: str, base: str, overrides: Any) -> None:
    """Refuse a stored policy that could not be used, naming the field. Raises ValidationError."""
    if name in PRESETS:
        raise ValidationError({"name": "A preset has this name."})
    if base not in PRESETS:
        raise ValidationError(
            {"base": f"There is no preset named {base!r}; there are {', '.join(PRESETS)}."}
        )
    try:
        Policy.parse(overrides, PRESETS[base])
    except PolicyError as error:
        raise ValidationError({"overrides": str(error)}) from None
