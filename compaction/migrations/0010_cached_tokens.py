"""Count the input tokens of a run that were read from a cache."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0009_standing_rules"),
    ]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="cached_tokens",
            field=models.PositiveIntegerField(
                default=0,
                help_text="Of the input tokens, those that were read from a provider's cache.",
            ),
        ),
    ]
