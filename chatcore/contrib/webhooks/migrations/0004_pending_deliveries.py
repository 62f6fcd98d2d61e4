"""Index pending deliveries by time: without it the admin's filter reads the whole table."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("webhooks", "0003_indexes_of_attempts")]

    operations = [
        AddIndexWithoutLock(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["-created_at", "-id"],
                condition=models.Q(("status", "pending")),
                name="pending_deliveries",
            ),
        ),
    ]
