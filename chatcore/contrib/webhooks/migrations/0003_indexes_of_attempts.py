"""Index first and further attempts apart: those of a paused address are not read at each look."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("webhooks", "0002_pause_of_an_address")]

    operations = [
        AddIndexWithoutLock(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["webhook", "next_attempt_at"],
                condition=models.Q(("attempts", 0), ("status", "pending")),
                name="first_attempts",
            ),
        ),
        AddIndexWithoutLock(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["next_attempt_at"],
                condition=models.Q(("attempts__gt", 0), ("status", "pending")),
                name="further_attempts",
            ),
        ),
    ]
