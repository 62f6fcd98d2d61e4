"""Store which model somebody chose to write the summary of one run."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("compaction", "0018_runs_in_line")]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="summary_model",
            field=models.CharField(
                blank=True,
                db_default="",
                default="",
                help_text="The model that somebody chose for this run; empty: the one of all runs.",
                max_length=200,
            ),
        ),
    ]
