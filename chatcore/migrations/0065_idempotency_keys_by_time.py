"""Index the keys of repeated requests by time: a chore deletes those that are a day old."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0001_squashed_0064")]

    operations = [
        AddIndexWithoutLock(
            model_name="idempotencykey",
            index=models.Index(fields=["created_at"], name="keys_by_time"),
        )
    ]
