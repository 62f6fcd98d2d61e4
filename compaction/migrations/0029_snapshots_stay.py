"""Runs keep their copy of the policy, so nothing looks for the old ones any more."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("compaction", "0028_runs_with_snapshots")]

    operations = [migrations.RemoveIndex("compactionrun", "runs_with_snapshots")]
