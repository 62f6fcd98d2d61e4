from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from models_registry import catalog


def seed(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A plain `migrate` knows the well-known models; `sync_models` keeps them up to date."""
    catalog.sync(apps, schema_editor.connection.alias)


class Migration(migrations.Migration):
    dependencies = [("models_registry", "0001_initial")]

    operations = [migrations.RunPython(seed, migrations.RunPython.noop)]
