"""Remember how fast models read and write, and how long a run should take."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0007_basis_of_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="expected_seconds",
            field=models.PositiveIntegerField(
                blank=True,
                help_text="How long its summary should take, by the model's speed.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="modelratio",
            name="answer_speed",
            field=models.FloatField(
                blank=True,
                help_text="Tokens a second that it writes; null: not measured.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="modelratio",
            name="prompt_speed",
            field=models.FloatField(
                blank=True,
                help_text="Tokens a second that it reads; null: not measured.",
                null=True,
            ),
        ),
    ]
