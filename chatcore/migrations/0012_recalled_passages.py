"""Store with a turn what it brings back from before the boundary."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0011_index_the_stems")]

    operations = [
        migrations.AddField(
            model_name="turn",
            name="recalled",
            field=models.JSONField(
                blank=True,
                help_text=(
                    "What it brings back from before the boundary (context/recalled.py). "
                    "Null: it has not been looked for."
                ),
                null=True,
            ),
        ),
    ]
