"""System checks of the setting CHATCORE, and of what the database must be able to do."""

import sqlite3
from collections.abc import Sequence

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError
from django.utils.module_loading import import_string

from chatcore.base.databases import absent_apps
from models_registry.models import Provider
from models_registry.provider_options import find_problems

# The first version whose UPDATE can return the new values of a row. Messages and events get their
# numbers so.
SQLITE_VERSION = (3, 35)
REPLACED_SETTINGS = ("CONTEXT_GUARD", "POLICIES", "VALIDATE_OVERRIDE", "TOOL_OUTPUT")


@register(Tags.compatibility)
def check_compactor(**_: object) -> list[CheckMessage]:
    """Report a compactor that cannot be imported."""
    path = settings.CHATCORE.get("COMPACTOR")
    if not path:
        return []
    try:
        import_string(path)
    except ImportError as error:
        return [Error(f'CHATCORE["COMPACTOR"] cannot be imported: {error}', id="chatcore.E001")]
    return []


@register(Tags.compatibility)
def check_replaced_settings(**_: object) -> list[CheckMessage]:
    """Warn about settings of earlier versions, which are ignored now."""
    return [
        Warning(
            f'CHATCORE["{name}"] is no longer used.',
            hint='Name one class in CHATCORE["COMPACTOR"] (docs/decisions/0005).',
            id="chatcore.W001",
        )
        for name in REPLACED_SETTINGS
        if name in settings.CHATCORE
    ]


@register(Tags.compatibility)
def check_absent_apps(**_: object) -> list[CheckMessage]:
    """Report rows of apps that are left out, which nobody would show, count, keep or delete."""
    try:
        left_rows = absent_apps.list_left_rows()
    except DatabaseError:  # there is none yet, or it is away, as the command itself will say
        return []
    return [
        Error(
            f"CHATCORE_WITHOUT leaves {app.name} out, and {table} has rows.",
            hint=f"Install it again, or run `chatcore drop_app {app.name}`, which writes the rows"
            " into an archive and drops them.",
            id="chatcore.E003",
        )
        for app, table in left_rows
    ]


@register(Tags.compatibility)
def check_sqlite_version(**_: object) -> list[CheckMessage]:
    """Report an SQLite library that is too old, if a database needs it."""
    engines = [database["ENGINE"] for database in settings.DATABASES.values()]
    is_used = any(engine.endswith("sqlite3") for engine in engines)
    if not is_used or sqlite3.sqlite_version_info >= SQLITE_VERSION:
        return []
    return [
        Error(
            f"SQLite {sqlite3.sqlite_version} is too old.",
            hint="Use a Python that was built with SQLite 3.35 or later, or PostgreSQL.",
            id="chatcore.E002",
        )
    ]


@register(Tags.database)
def check_provider_options(
    databases: Sequence[str] | None = None, **_: object
) -> list[CheckMessage]:
    """Warn about stored options of providers that their form would refuse."""
    if not databases:
        return []
    try:
        rows = list(Provider.objects.order_by("name").values_list("name", "options"))
    except DatabaseError:  # there is none yet
        return []
    return [
        Warning(
            f"The options of the provider {name} cannot be saved again: {' '.join(problems)}",
            hint="Correct or remove them in the admin.",
            id="chatcore.W002",
        )
        for name, options in rows
        if (problems := find_problems(options))
    ]
