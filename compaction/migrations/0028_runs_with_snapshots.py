"""Index the runs that have a copy of their policy. The index is built without a lock."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compaction", "0027_snapshots_end")]

    operations = [
        AddIndexWithoutLock(
            model_name="compactionrun",
            index=models.Index(
                condition=models.Q(("policy_snapshot__isnull", False)),
                fields=["finished_at"],
                name="runs_with_snapshots",
            ),
        )
    ]
