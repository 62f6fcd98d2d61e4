"""System checks of the setting COMPACTION and of the stored policies."""

from collections.abc import Mapping, Sequence

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Info, Tags, Warning, register
from django.db import DatabaseError

from compaction import policies
from compaction.core.knobs import PolicyError
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.systems import CORE_FALLBACKS, CORE_PRESETS
from compaction.models import CompactionPolicy

PERIODS = ("CALL_DAYS", "RUN_DAYS")
NAMES = ("POLICY", "AUTOMATIC", "THRESHOLD", "SUMMARY_MODEL", *policies.FLOW_DEFAULTS, *PERIODS)


@register(Tags.compatibility)
def check_values(**_: object) -> list[CheckMessage]:
    """Report wrong values and unknown names in COMPACTION, and a worker that is not installed."""
    values: Mapping[str, object] = settings.COMPACTION
    messages = [*_check_types(values), *_check_names(values)]
    if values.get("AUTOMATIC", True) and not apps.is_installed("django_q"):
        messages.append(
            Warning(
                "Compaction starts by itself, but its worker is not installed.",
                hint='Add "django_q" to INSTALLED_APPS, or set COMPACTION["AUTOMATIC"] to False.',
                id="compaction.W003",
            )
        )
    return messages


@register(Tags.compatibility)
def check_policy_name(**_: object) -> list[CheckMessage]:
    """Report a policy name that is no name. Only the database knows whether the policy exists."""
    if not isinstance(settings.COMPACTION.get("POLICY", ""), str):
        return [Error('COMPACTION["POLICY"] must be the name of a policy.', id="compaction.E002")]
    return []


@register(Tags.database)
def check_stored_policies(
    databases: Sequence[str] | None = None, **_: object
) -> list[CheckMessage]:
    """Report a project's policy that does not exist, and stored policies that cannot be used."""
    if not databases:
        return []
    return [*_check_project_policy(), *_check_policy_rows()]


def _check_project_policy() -> list[CheckMessage]:
    name = settings.COMPACTION.get("POLICY", "")
    if not name or check_policy_name():
        return []
    try:
        policies.load_policy(name)
    except (policies.UnknownPolicy, PolicyError, DatabaseError) as error:
        # Before the first migration there is no table, so only presets can be named.
        hint = f"CHATCORE_POLICY may be {', '.join(PRESETS)}, or the name of a stored policy."
        return [Error(f'COMPACTION["POLICY"]: {error}', hint=hint, id="compaction.E003")]
    return []


def _check_policy_rows() -> list[CheckMessage]:
    warnings: list[CheckMessage] = []
    try:
        rows = list(CompactionPolicy.objects.all())
        chosen = policies.get_project_policy()
    except DatabaseError:  # not migrated yet
        return []
    if chosen not in ("", *PRESETS, *(row.name for row in rows if row.is_active)):
        text = f"The policy {chosen!r} of the admin's settings is not there, and is skipped."
        warnings.append(Warning(text, id="compaction.W001"))
    for row in rows:
        try:
            warnings += _check_parts(row.name, row.base, policies.load_policy(row.name))
        except (policies.UnknownPolicy, PolicyError) as error:
            warnings.append(
                Warning(
                    f"The stored policy {row.name!r} cannot be used and is skipped: {error}",
                    id="compaction.W001",
                )
            )
    return warnings


def _check_parts(name: str, base: str, policy: Policy) -> list[CheckMessage]:
    """Name the settings of other systems in a policy that is based on one of the core's presets."""
    names = policy.list_foreign()
    if policy.fallback.kind not in CORE_FALLBACKS:
        names.append("fallback.kind")
    if not names or base not in CORE_PRESETS:
        return []
    text = f"The stored policy {name!r} is based on {base}, and sets what only systems have: "
    hint = "Leave no system out (CHATCORE_WITHOUT) that it needs."
    return [Info(text + ", ".join(names) + ".", hint=hint, id="compaction.I001")]


def _check_types(values: Mapping[str, object]) -> list[CheckMessage]:
    sentences = []
    if not isinstance(values.get("AUTOMATIC", True), bool):
        sentences.append('COMPACTION["AUTOMATIC"] must be True or False.')
    if not _is_threshold(values.get("THRESHOLD")):
        sentences.append(
            'COMPACTION["THRESHOLD"] must be None, a share as 0.8, or a number of tokens.'
        )
    if not isinstance(values.get("SUMMARY_MODEL", ""), str):
        sentences.append('COMPACTION["SUMMARY_MODEL"] must be the name of a model, or empty.')
    sentences += [
        f'COMPACTION["{name}"] must be a whole number of at least 1.'
        for name, default in policies.FLOW_DEFAULTS.items()
        if not _is_period(values.get(name, default)) or not values.get(name, default)
    ]
    sentences += [
        f'COMPACTION["{name}"] must be a number of days; 0 is for good.'
        for name in PERIODS
        if not _is_period(values.get(name, 0))
    ]
    return [Error(sentence, id="compaction.E007") for sentence in sentences]


def _is_threshold(threshold: object) -> bool:
    if threshold is None:
        return True
    if isinstance(threshold, float):
        return 0 < threshold <= 1
    return isinstance(threshold, int) and not isinstance(threshold, bool) and threshold > 0


def _is_period(days: object) -> bool:
    return isinstance(days, int) and not isinstance(days, bool) and days >= 0


def _check_names(values: Mapping[str, object]) -> list[CheckMessage]:
    return [
        Warning(
            f'COMPACTION["{name}"] is no setting of compaction.',
            hint=f"There are {', '.join(NAMES)}.",
            id="compaction.W002",
        )
        for name in values
        if name not in NAMES
    ]
