"""Sessions that are temporary. The default is the database's, so nothing is written to the rows."""

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0033_shares")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="temporary",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="In no list and no search, and deleted some hours after its last use.",
            ),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(
                fields=["updated_at"],
                condition=models.Q(temporary=True),
                name="temporary_sessions",
            ),
        ),
    ]
