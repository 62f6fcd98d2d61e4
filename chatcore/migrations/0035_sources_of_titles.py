"""Note what a title that a model wrote is made of, so that it goes with the messages."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0034_temporary_sessions")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="title_source",
            field=models.JSONField(
                blank=True,
                editable=False,
                help_text="Of a title that a model wrote: its digest, and the seqs of the messages"
                " it is made of.",
                null=True,
            ),
        ),
    ]
