"""Drop what the choice of the next run and the canaries of the queue needed."""

from typing import Any

from django.db import migrations


def delete_canaries(apps: Any, schema_editor: Any) -> None:
    """Delete the messages that clusters of earlier versions sent to themselves."""
    connection = schema_editor.connection
    if "django_q_ormq" in connection.introspection.table_names():
        schema_editor.execute("DELETE FROM django_q_ormq WHERE key LIKE 'chatcore@%%'", [])


class Migration(migrations.Migration):
    dependencies = [("compaction", "0020_when_windows_were_learned")]

    operations = [
        migrations.RunPython(delete_canaries, migrations.RunPython.noop),
        migrations.DeleteModel(name="OwnerTurn"),
        migrations.RemoveField(model_name="workerbeat", name="processes"),
    ]
