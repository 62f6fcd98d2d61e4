"""Forks know which message they leave. The index is built without a lock."""

import django.db.models.deletion
from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0053_compat_is_an_app")]

    operations = [
        migrations.AddField(
            model_name="session",
            name="forked_from",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                editable=False,
                help_text=(
                    "The session that it is a fork of, of the same owner, who may have deleted it."
                ),
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="forks",
                to="chatcore.session",
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="forked_from_seq",
            field=models.PositiveIntegerField(
                blank=True,
                editable=False,
                help_text="The message there that was forked from.",
                null=True,
            ),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(
                fields=["forked_from"],
                condition=models.Q(forked_from__isnull=False),
                name="forks_of_a_session",
            ),
        ),
    ]
