"""Runs need not keep the policy that they had. SQLite makes their table anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0061_when_retention_began"),
        ("compaction", "0026_ids_in_order_of_time"),
    ]

    operations = [
        migrations.AlterField(
            "compactionrun",
            "policy_snapshot",
            models.JSONField(
                blank=True, default=dict, help_text="Null: not kept any more.", null=True
            ),
        )
    ]
