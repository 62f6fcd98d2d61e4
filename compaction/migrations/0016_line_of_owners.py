"""Note whose run it is and which places it needs, and whose turn it is.

Adding these columns rewrites no table on PostgreSQL: their values for old rows are constants.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0015_admin_indexes"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AddField(
            model_name="compactionrun",
            name="owner",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="compactionrun",
            name="provider",
            field=models.CharField(blank=True, db_default="", default="", max_length=64),
        ),
        migrations.AddField(
            model_name="compactionrun",
            name="places",
            field=models.IntegerField(db_default=2, default=2, help_text="flow.workers"),
        ),
        migrations.CreateModel(
            name="OwnerTurn",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("policy", models.CharField(max_length=64)),
                ("provider", models.CharField(blank=True, max_length=64)),
                ("places", models.IntegerField()),
                (
                    "is_waiting",
                    models.BooleanField(
                        default=True,
                        help_text=(
                            "A run may wait. False: none does, or only one to be tried later."
                        ),
                    ),
                ),
                (
                    "served_at",
                    models.DateTimeField(help_text="When a run of this owner was last claimed."),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("is_waiting", True)),
                        fields=["served_at", "id"],
                        name="owners_in_line",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("owner", "policy", "provider", "places"),
                        name="one_turn_a_kind_of_run",
                    )
                ],
            },
        ),
    ]
