"""Index when an owner was last served, so that owners take turns without a table of their own."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compaction", "0021_turns_by_query")]

    operations = [
        AddIndexWithoutLock(
            model_name="compactionrun",
            index=models.Index(
                fields=["owner", "-started_at"],
                condition=models.Q(("started_at__isnull", False)),
                name="runs_served",
            ),
        ),
    ]
