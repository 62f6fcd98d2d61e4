"""Find the histories of a client by time."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compat", "0003_summaries_that_programs_ask_for")]

    operations = [
        AddIndexWithoutLock(
            model_name="historykey",
            index=models.Index(fields=["client", "-used_at"], name="histories_of_client"),
        ),
    ]
