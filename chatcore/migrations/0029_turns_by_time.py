"""Index turns by time, for the list of the admin and what it counts of a day."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0028_clearing_of_turns")]

    operations = [
        AddIndexWithoutLock(
            model_name="turn",
            index=models.Index(fields=["-started_at"], name="turns_by_time"),
        ),
    ]
