"""Know the token of each response, to find the conversation that a program's summary is about."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("compat", "0004_histories_of_client")]

    operations = [
        migrations.AddField(
            model_name="storedresponse",
            name="client",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="A hash of the user and the token, where the client names no conversation.",
                max_length=64,
            ),
        ),
    ]
