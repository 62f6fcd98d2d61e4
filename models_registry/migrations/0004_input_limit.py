from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from models_registry import catalog


def add_limits(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Complete the rows that 0002 has just seeded, when there was no such column.

    Older rows have the limit as their window, until `sync_models` corrects both.
    """
    rows = apps.get_model("models_registry", "AiModel").objects.using(
        schema_editor.connection.alias
    )
    for model in catalog.load_catalog().models:
        limit = model.values.get("max_input_tokens")
        window = model.values.get("context_window_size")
        if limit is None or model.provider is None:
            continue
        for row in rows.filter(
            provider__name=model.provider, name=model.name, context_window_size=window
        ):
            row.max_input_tokens = row.catalog_values["max_input_tokens"] = limit
            row.save()


class Migration(migrations.Migration):
    dependencies = [("models_registry", "0003_right_to_connect")]

    operations = [
        migrations.AddField(
            model_name="aimodel",
            name="max_input_tokens",
            field=models.PositiveIntegerField(
                blank=True,
                help_text=(
                    "The most tokens of a request, where that is less than the window; else empty."
                ),
                null=True,
            ),
        ),
        migrations.RunPython(add_limits, migrations.RunPython.noop),
    ]
