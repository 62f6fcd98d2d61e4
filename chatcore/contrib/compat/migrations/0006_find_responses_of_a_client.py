"""Find the responses of a client by time."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("compat", "0005_responses_of_a_client")]

    operations = [
        AddIndexWithoutLock(
            model_name="storedresponse",
            index=models.Index(fields=["client", "-created_at"], name="responses_of_client"),
        ),
    ]
