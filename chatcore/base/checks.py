"""System checks of the setting CHATCORE, and of what the database must be able to do."""

import sqlite3
from collections.abc import Sequence

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.db import DatabaseError
from django.utils.module_loading import import_string

from chatcore.base.databases import absent_apps, old_databases
from models_registry.models import Provider
from models_registry.provider_options import find_problems

# The first version whose UPDATE can return the new values of a row. Messages and events get their
# numbers so.
SQLITE_VERSION = (3, 35)


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
def check_age(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Report a database whose migrations are gone."""
    try:
        are_too_old = [old_databases.is_database_too_old(alias) for alias in databases or ()]
    except DatabaseError:  # it is away, as the command itself will say
        return []
    return [Error(f"The database {old_databases.REFUSAL}.", id="chatcore.E004")] * any(are_too_old)


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
