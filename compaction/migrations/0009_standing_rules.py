"""Keep rules that a person has lifted from a session to all of them."""

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

SESSION_MODEL = "chatcore.Session"


class Migration(migrations.Migration):
    dependencies = [
        migrations.swappable_dependency(SESSION_MODEL),
        ("compaction", "0008_speed_of_models"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="SentRules",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=SESSION_MODEL,
                    ),
                ),
                ("fingerprint", models.CharField(max_length=64)),
                ("version", models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="StandingRule",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("kind", models.CharField(help_text="As of a line of the ledger.", max_length=16)),
                ("text", models.TextField()),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "line",
                    models.ForeignKey(
                        blank=True,
                        help_text="The line that it was lifted from; null: a person wrote it, or the line is gone.",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="standing_rules",
                        to="compaction.ledgerline",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="standing_rules",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["id"],
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "line"), name="one_rule_of_a_line")
                ],
            },
        ),
    ]
