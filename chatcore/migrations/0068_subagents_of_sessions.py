"""Say which session a subagent's session stands below; the index is made without a lock."""

import django.db.models.deletion
from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False 

    dependencies = [
        ("chatcore", "0067_trimmed_answers"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="parent",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                editable=False,
                help_text="Of a subagent's session: that of the conversation that started the subagent.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="subagents",
                to="chatcore.session",
            ),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(
                fields=["parent"],
                condition=models.Q(parent__isnull=False),
                name="subagents_of_a_session",
            ),
        ),
    ]
