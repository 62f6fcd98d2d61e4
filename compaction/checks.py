"""System checks of the setting COMPACTION and of the stored policies."""

from collections.abc import Sequence
from inspect import isfunction

from django.apps import apps
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError
from django.db.models import UUIDField

from compaction import policies, project_settings
from compaction.backends.base import Backend, ContextStore, SessionFactsSource
from compaction.backends.calls import SummaryCaller
from compaction.backends.messages import MessageSource
from compaction.backends.registry import import_backend
from compaction.core.knobs import PolicyError
from compaction.core.presets import PRESETS
from compaction.models import CompactionPolicy

# What runs need. Only a host whose requests are guarded as well also needs a RequestEditor.
PROTOCOLS = (SessionFactsSource, ContextStore, SummaryCaller, MessageSource, Backend)
REQUIRED_METHODS = tuple(
    name
    for protocol in PROTOCOLS
    for name, value in vars(protocol).items()
    if isfunction(value) and not name.startswith("_")
)


@register(Tags.compatibility)
def check_backend(**_: object) -> list[CheckMessage]:
    """Report a backend that cannot be imported."""
    path = settings.COMPACTION.get("BACKEND")
    if not path or not isinstance(path, str):
        return [
            Error(
                'COMPACTION["BACKEND"] is missing; it must be the dotted path of a class.',
                hint=project_settings.GUIDE,
                id="compaction.E001",
            )
        ]
    try:
        backend = import_backend(path)
    except ImportError as error:
        return [Error(f'COMPACTION["BACKEND"] cannot be imported: {error}', id="compaction.E001")]
    return _check_methods(path, backend)


def _check_methods(path: str, backend: type) -> list[CheckMessage]:
    missing = [name for name in REQUIRED_METHODS if not callable(getattr(backend, name, None))]
    missing += getattr(backend, "__abstractmethods__", ())
    if not missing:
        return []
    names = ", ".join(f"{name}()" for name in sorted(missing))
    return [
        Error(
            f'COMPACTION["BACKEND"] names {path}, which has no {names}.',
            hint="compaction/backends/base.py says what each method does.",
            id="compaction.E006",
        )
    ]


@register(Tags.compatibility)
def check_values(**_: object) -> list[CheckMessage]:
    """Report wrong values and unknown names in COMPACTION, and a worker that is not installed."""
    messages = project_settings.list_value_errors()
    is_automatic = settings.COMPACTION.get("AUTOMATIC", True)
    if is_automatic and not apps.is_installed("django_q"):
        messages.append(
            Warning(
                "Compaction starts by itself, but its worker is not installed.",
                hint='Add "django_q" to INSTALLED_APPS, or set COMPACTION["AUTOMATIC"] to False.',
                id="compaction.W003",
            )
        )
    return messages


@register(Tags.models)
def check_session_model(**_: object) -> list[CheckMessage]:
    """Report a model of conversations that does not exist, or that cannot be one."""
    label = settings.COMPACTION["SESSION_MODEL"]
    try:
        model = apps.get_model(label)
    except (LookupError, ValueError):
        return [
            Error(
                f'COMPACTION["SESSION_MODEL"] is "{label}", and no installed app has such a model.',
                hint="Its app must be in INSTALLED_APPS.",
                id="compaction.E005",
            )
        ]
    key = model._meta.pk
    problems = [] if isinstance(key, UUIDField) else ["its primary key must be a UUIDField"]
    names = {field.name for field in model._meta.get_fields()}
    problems += [] if "context_version" in names else ["it needs a field 'context_version'"]
    return [
        Error(
            f'COMPACTION["SESSION_MODEL"] is "{label}": {problem}.',
            hint=project_settings.GUIDE,
            id="compaction.E008",
        )
        for problem in problems
    ]


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
    name = settings.COMPACTION.get("POLICY", "")
    if check_policy_name():
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
