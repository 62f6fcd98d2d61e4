"""Remember how much of its files the first request with a message held."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0014_tables_of_stems"),
    ]

    operations = [
        migrations.AddField(
            model_name="message",
            name="sent_file_chars",
            field=models.JSONField(
                blank=True,
                editable=False,
                help_text=(
                    "Characters of each text file that its first request held, null for all; "
                    "null: unknown."
                ),
                null=True,
            ),
        ),
    ]
