import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

SESSION_MODEL = settings.COMPACTION["SESSION_MODEL"]
OPEN = models.Q(status__in=("queued", "running"))


def forget_deleted_sessions(apps, schema_editor):
    """What earlier releases left behind of deleted sessions would break the new constraint."""
    database = schema_editor.connection.alias
    sessions = apps.get_model(SESSION_MODEL).objects.using(database).values("pk")
    for name in ("CompactionRun", "SessionState"):
        apps.get_model("compaction", name).objects.using(database).exclude(session_id__in=sessions).delete()


class Migration(migrations.Migration):
    dependencies = [
        ("compaction", "0002_state_learned_from_refusals"),
        migrations.swappable_dependency(SESSION_MODEL),
    ]

    operations = [
        migrations.RunPython(forget_deleted_sessions, migrations.RunPython.noop),
        migrations.RemoveConstraint("compactionrun", "one_open_run_a_session"),
        migrations.RemoveIndex("compactionrun", "runs_of_a_session"),
        migrations.RenameField("compactionrun", "session_id", "session"),
        migrations.AlterField(
            "compactionrun",
            "session",
            models.ForeignKey(SESSION_MODEL, on_delete=django.db.models.deletion.CASCADE, related_name="+", db_index=False),
        ),
        migrations.AddIndex("compactionrun", models.Index(fields=["session", "-created_at"], name="runs_of_a_session")),
        migrations.AddConstraint(
            "compactionrun", models.UniqueConstraint(fields=["session"], condition=OPEN, name="one_open_run_a_session")
        ),
        migrations.RenameField("sessionstate", "session_id", "session"),
        migrations.AlterField(
            "sessionstate",
            "session",
            models.OneToOneField(SESSION_MODEL, on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name="+", serialize=False),
        ),
    ]
