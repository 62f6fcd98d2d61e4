"""Build indexes of large tables while everybody goes on writing."""

from typing import Any

from django.db import migrations
from django.db.migrations.state import ProjectState


class AddIndexWithoutLock(migrations.AddIndex):
    """Build an index, on PostgreSQL concurrently. Its migration must have `atomic = False`."""

    def database_forwards(
        self,
        app_label: str,
        schema_editor: Any,
        from_state: ProjectState,
        to_state: ProjectState,
    ) -> None:
        """Build it; what an interrupted attempt left on PostgreSQL is built again."""
        model = to_state.apps.get_model(app_label, self.model_name)
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
        elif self.allow_migrate_model(schema_editor.connection.alias, model):
            name = schema_editor.quote_name(self.index.name)
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            schema_editor.add_index(model, self.index, concurrently=True)
