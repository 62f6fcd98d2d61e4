"""System checks of the compaction settings."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

from compaction import policies
from compaction.backends.registry import import_backend
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy


@register(Tags.compatibility)
def check_backend(**_: Any) -> list[CheckMessage]:
    """The host must be there."""
    path = settings.COMPACTION.get("BACKEND", "")
    try:
        import_backend(path)
    except ImportError as error:
        return [Error(f'COMPACTION["BACKEND"] cannot be imported: {error}', id="compaction.E001")]
    return []


@register(Tags.compatibility)
def check_policy_name(**_: Any) -> list[CheckMessage]:
    """Whether a policy of that name exists is a question for the database, below."""
    name = settings.COMPACTION.get("POLICY", "")
    if not isinstance(name, str) or not name:
        return [Error('COMPACTION["POLICY"] must be the name of a policy.', id="compaction.E002")]
    return []


@register(Tags.database)
def check_stored_policies(databases: Any = None, **_: Any) -> list[CheckMessage]:
    """The project's policy exists, and every stored policy can be used."""
    return [*_check_project_policy(), *_check_policy_rows()] if databases else []


def _check_project_policy() -> list[CheckMessage]:
    name = settings.COMPACTION["POLICY"]
    try:
        policies.load_policy(name)
    except (
        policies.UnknownPolicy,
        PolicyError,
        DatabaseError,
    ) as error:  # before the first migration there are presets only
        hint = f"CHATCORE_POLICY may be {', '.join(PRESETS)}, or the name of a stored policy."
        return [Error(f'COMPACTION["POLICY"]: {error}', hint=hint, id="compaction.E003")]
    return []


def _check_policy_rows() -> list[CheckMessage]:
    warnings: list[CheckMessage] = []
    try:
        rows = list(CompactionPolicy.objects.all())
    except DatabaseError:  # not migrated yet
        return []
    for row in rows:
        try:
            policies.load_policy(row.name)
        except (policies.UnknownPolicy, PolicyError) as error:
            warnings.append(
                Warning(
                    f"The stored policy {row.name!r} cannot be used and is passed over: {error}",
                    id="compaction.W001",
                )
            )
    return warnings
