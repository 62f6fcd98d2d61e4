"""Index runs by time, for the list of the admin and what it counts of a day."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compaction", "0014_calls_of_runs")]

    operations = [
        AddIndexWithoutLock(
            model_name="compactionrun",
            index=models.Index(fields=["-created_at", "-id"], name="runs_by_time"),
        ),
    ]
