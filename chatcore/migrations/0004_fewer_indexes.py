"""Drop indexes that repeat the beginning of another one, and index only rows that are looked for.

`lease_until` loses its index, so that PostgreSQL renews a lease without touching any index of the
turn (HOT).
"""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import Q


class DropIndexOfKey(migrations.AlterField):
    """Drop the index that a foreign key has by itself, and nothing else.

    AlterField would copy the whole table on SQLite, where the triggers of the search index are lost
    with the old one, and would check every row of the foreign key again on PostgreSQL.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Drop the index, whatever its name is."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        column = model._meta.get_field(self.name).column
        named_indexes = {index.name for index in model._meta.indexes}
        for name in schema_editor._constraint_names(
            model, [column], index=True, unique=False, exclude=named_indexes
        ):
            schema_editor.execute(schema_editor._delete_index_sql(model, name))

    def database_backwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: Any,
        to_state: Any,
    ) -> None:
        """Create the index again."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if not self.allow_migrate_model(schema_editor.connection.alias, model):
            return
        field = model._meta.get_field(self.name)
        schema_editor.execute(schema_editor._create_index_sql(model, fields=[field]))


class Migration(migrations.Migration):
    dependencies = [
        ("models_registry", "0001_initial"),
        ("chatcore", "0003_plain_help_texts"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        DropIndexOfKey(
            model_name="session",
            name="owner",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="chat_sessions",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        DropIndexOfKey(
            model_name="message",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="messages",
                to="chatcore.session",
            ),
        ),
        DropIndexOfKey(
            model_name="sessionevent",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="events",
                to="chatcore.session",
            ),
        ),
        DropIndexOfKey(
            model_name="contextrevision",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="revisions",
                to="chatcore.session",
            ),
        ),
        DropIndexOfKey(
            model_name="turn",
            name="session",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="turns",
                to="chatcore.session",
            ),
        ),
        DropIndexOfKey(
            model_name="message",
            name="replaces",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The message that this one is another version of.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="replacements",
                to="chatcore.message",
            ),
        ),
        DropIndexOfKey(
            model_name="turn",
            name="replaces",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="The answer that this turn writes again.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="chatcore.message",
            ),
        ),
        DropIndexOfKey(
            model_name="turn",
            name="model",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                help_text="Null: the session's.",
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to="models_registry.aimodel",
            ),
        ),
        migrations.RemoveIndex(model_name="turn", name="turns_to_recover"),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=Q(replaces__isnull=False),
                fields=["replaces"],
                name="messages_that_replace",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=Q(status="streaming"), fields=["turn"], name="streaming_messages"
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=Q(replaces__isnull=False), fields=["replaces"], name="turns_that_replace"
            ),
        ),
        migrations.AddIndex(
            model_name="turn",
            index=models.Index(
                condition=Q(model__isnull=False), fields=["model"], name="turns_with_a_model"
            ),
        ),
        migrations.AddIndex(
            model_name="sessionevent",
            index=models.Index(
                condition=Q(name="context.usage"),
                fields=["session", "seq"],
                name="usage_of_a_session",
            ),
        ),
    ]
