"""System checks of the setting COMPACTION and of the stored policies."""

from collections.abc import Sequence

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError

from compaction import policies
from compaction.backends.registry import import_backend
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy


@register(Tags.compatibility)
def check_backend(**_: object) -> list[CheckMessage]:
    """Report a backend that cannot be imported."""
    path = settings.COMPACTION.get("BACKEND", "")
    try:
        import_backend(path)
    except ImportError as error:
        return [Error(f'COMPACTION["BACKEND"] cannot be imported: {error}', id="compaction.E001")]
    return []


@register(Tags.compatibility)
def check_policy_name(**_: object) -> list[CheckMessage]:
    """Report a policy name that is no name. Only the database knows whether the policy exists."""
    name = settings.COMPACTION.get("POLICY", "")
    if not isinstance(name, str) or not name:
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
    name = settings.COMPACTION["POLICY"]
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
    except DatabaseError:  # not migrated yet
        return []
    for row in rows:
        try:
            policies.load_policy(row.name)
        except (policies.UnknownPolicy, PolicyError) as error:
            warnings.append(
                Warning(
                    f"The stored policy {row.name!r} cannot be used and is skipped: {error}",
                    id="compaction.W001",
                )
            )
    return warnings
