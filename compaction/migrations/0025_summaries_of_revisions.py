"""Store each summary once: a run tells those of the revisions before and after it.

What a run said of deleted messages is marked in the revision and in its state, as it is from now on.
"""

from typing import Any

from django.db import migrations
from django.db.models import Exists, OuterRef

FORGOTTEN_TEXT = "[forgotten: a message it was written from was deleted]"


def mark_what_is_forgotten(apps: Any, schema_editor: Any) -> None:
    alias = schema_editor.connection.alias
    runs = apps.get_model("compaction", "CompactionRun").objects.using(alias)
    revisions = apps.get_model("chatcore", "ContextRevision").objects.using(alias)
    for side in ("before", "after"):
        telling_runs = runs.filter(
            **{f"summary_{side}": FORGOTTEN_TEXT, f"version_{side}": OuterRef("version")},
            session=OuterRef("session"),
        )
        stale_revisions = revisions.filter(Exists(telling_runs), stale=True)
        stale_revisions.filter(summary=None).update(summary="")
    forgotten_runs = runs.filter(summary_after=FORGOTTEN_TEXT, state_after={})
    forgotten_runs.update(state_after={"forgotten": True})


class Migration(migrations.Migration):
    dependencies = [
        ("chatcore", "0059_no_keys_that_are_not_given"),
        ("compaction", "0024_memory_is_an_app"),
    ]

    operations = [
        migrations.RunPython(mark_what_is_forgotten, migrations.RunPython.noop),
        migrations.RemoveField("compactionrun", "summary_before"),
        migrations.RemoveField("compactionrun", "summary_after"),
    ]
