"""Index what the operators' lists filter runs by, and the few sessions that do not compact."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compaction", "0015_admin_indexes")]

    operations = [
        *(
            AddIndexWithoutLock(
                model_name="compactionrun",
                index=models.Index(fields=[name, "-created_at", "-id"], name=f"runs_by_{name}"),
            )
            for name in ("status", "trigger", "policy")
        ),
        AddIndexWithoutLock(
            model_name="sessionstate",
            index=models.Index(
                fields=["session"],
                condition=models.Q(fruitless__gte=2),
                name="sessions_that_stopped",
            ),
        ),
        AddIndexWithoutLock(
            model_name="sessionstate",
            index=models.Index(
                fields=["not_before"],
                condition=models.Q(not_before__isnull=False),
                name="sessions_that_wait",
            ),
        ),
        AddIndexWithoutLock(
            model_name="sessionstate",
            index=models.Index(
                fields=["session"], condition=models.Q(trimming=True), name="sessions_that_trim"
            ),
        ),
    ]
