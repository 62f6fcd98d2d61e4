"""Index the runs that wait, so that the oldest of an owner is found at once."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("compaction", "0016_line_of_owners"),
        ("compaction", "0017_indexes_of_lists"),
    ]

    operations = [
        AddIndexWithoutLock(
            model_name="compactionrun",
            index=models.Index(
                fields=["owner", "policy", "provider", "places", "created_at", "id"],
                condition=models.Q(("status", "queued")),
                name="runs_in_line",
            ),
        ),
    ]
