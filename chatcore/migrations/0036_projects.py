"""Keep projects with their files, and the project of a session."""

import uuid

import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import chatcore.models.project
from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [
        ("chatcore", "0035_sources_of_titles"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("instructions", models.TextField(blank=True)),
                (
                    "rules",
                    models.JSONField(
                        default=list, help_text="Lines, word for word, in their order."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "edited_at",
                    models.DateTimeField(
                        default=django.utils.timezone.now,
                        editable=False,
                        help_text="When what its chats are told last changed.",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="projects",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={"ordering": ["name", "id"]},
        ),
        migrations.CreateModel(
            name="ProjectFile",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("media_type", models.CharField(max_length=100)),
                ("size", models.PositiveIntegerField(help_text="Bytes.")),
                (
                    "sent_chars",
                    models.PositiveIntegerField(
                        help_text="Characters that it takes in a request, with its fence."
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(default=django.utils.timezone.now, editable=False),
                ),
                (
                    "store_name",
                    models.CharField(
                        blank=True,
                        db_index=True,
                        help_text="Of its bytes in the store of files and outputs;"
                        " empty: they are in the row.",
                        max_length=100,
                    ),
                ),
                ("data", models.BinaryField(help_text="Empty where the text is the file.")),
                ("text", models.TextField()),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=chatcore.models.project.cascade_to_content,
                        related_name="files",
                        to="chatcore.project",
                    ),
                ),
            ],
            options={"ordering": ["created_at", "id"]},
        ),
        migrations.AddField(
            model_name="session",
            name="overhead_since",
            field=models.DateTimeField(
                blank=True,
                editable=False,
                help_text="When what is sent besides its messages last changed: project, prompt, tools.",
                null=True,
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="project",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="sessions",
                to="chatcore.project",
            ),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(
                condition=models.Q(project__isnull=False),
                fields=["project", "-updated_at", "-id"],
                name="sessions_of_a_project",
            ),
        ),
    ]
