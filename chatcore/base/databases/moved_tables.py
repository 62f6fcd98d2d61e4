"""Steps of migrations that move tables from one app to another, with all that hangs on them.

The tables keep their names. The new app takes those that a database from before has, and makes
those that are missing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.apps import apps as installed_apps
from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import StateApps
from django.db.models import Model

NOBODY: Mapping[str, Sequence[str]] = {}
# Of an app that gives rights to the groups of staff, which compaction makes.
AFTER_STAFF_GROUPS = (
    [("compaction", "0001_squashed_0029")] if installed_apps.is_installed("compaction") else []
)


def make_again_backwards(label: str, *names: str) -> migrations.RunPython:
    """Leave the tables of these models to a new app; backwards, make those that it has dropped."""

    def make_again(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        _create_missing([apps.get_model(label, name) for name in names], schema_editor)

    return migrations.RunPython(migrations.RunPython.noop, make_again)


def create_or_adopt(label: str) -> migrations.RunPython:
    """Make the tables of the new app that are not there; backwards, drop them."""

    def create(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        _create_missing(apps.get_app_config(label).get_models(), schema_editor)

    def drop(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        for model in apps.get_app_config(label).get_models():
            schema_editor.delete_model(model)

    return migrations.RunPython(create, drop)


def adopt_rights(
    label: str,
    *names: str,
    staff: Mapping[str, Sequence[str]] = NOBODY,
    former_label: str = "chatcore",
) -> migrations.RunPython:
    """Give the models' content types to the new app: rights, groups and the log hang on them.

    Where there were none yet, `staff` says which rights of the app each group of staff has.
    """

    def adopt(apps: StateApps, schema_editor: BaseDatabaseSchemaEditor) -> None:
        alias = schema_editor.connection.alias
        content_types = apps.get_model("contenttypes", "ContentType").objects.using(alias)
        is_new = not content_types.filter(app_label=label).exists()
        for name in names:
            former_types = content_types.filter(app_label=former_label, model=name.lower())
            if former_types.exists():
                is_new = False
                content_types.filter(app_label=label, model=name.lower()).delete()
                former_types.update(app_label=label)
        if is_new and staff:
            give_rights(apps, label, staff, alias)

    return migrations.RunPython(adopt, migrations.RunPython.noop)


def give_rights(apps: Apps, label: str, staff: Mapping[str, Sequence[str]], alias: str) -> None:
    """Give rights of an app to groups of staff, as far as these groups are there."""
    config: Any = apps.get_app_config(label)
    models_module = getattr(config, "models_module", None)
    config.models_module = models_module or True  # a migration's has none, and would be passed over
    create_permissions(config, apps=apps, verbosity=0, using=alias)
    config.models_module = models_module
    permissions = apps.get_model("auth", "Permission").objects.using(alias)
    for group in apps.get_model("auth", "Group").objects.using(alias).filter(name__in=staff):
        rights = permissions.filter(content_type__app_label=label, codename__in=staff[group.name])
        group.permissions.add(*rights)


def _create_missing(models: Iterable[type[Model]], schema_editor: BaseDatabaseSchemaEditor) -> None:
    connection = schema_editor.connection
    with connection.cursor() as cursor:
        tables = set(connection.introspection.table_names(cursor))
    for model in models:
        if model._meta.db_table not in tables:
            schema_editor.create_model(model)
