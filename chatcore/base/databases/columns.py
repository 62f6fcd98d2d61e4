"""Add a column to a large table on SQLite without a copy of the table."""

from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations.state import ProjectState


class AddFieldWithoutCopy(migrations.AddField):
    """Add a field that has a constant `db_default`.

    For a column that is not null, Django makes the table anew on SQLite. That takes minutes, and
    loses the triggers of the search index (chatcore/search/tables.py). SQLite itself only notes
    such a column and its default.
    """

    def database_forwards(
        self,
        app_label: str,
        schema_editor: BaseDatabaseSchemaEditor,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Add the column; on SQLite by the one statement that other databases use."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "sqlite":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model):
            field = model._meta.get_field(self.name)
            BaseDatabaseSchemaEditor.add_field(schema_editor, model, field)
