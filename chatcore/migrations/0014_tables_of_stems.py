"""Keep the stems of PostgreSQL's index in tables of their own, so that a search is faster."""

from typing import Any

from django.db import migrations

from chatcore.search.index import SearchIndex


class StemTables(SearchIndex):
    """Make PostgreSQL's index anew. SQLite's stays."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Create the tables, and fill them."""
        if schema_editor.connection.vendor == "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Leave the tables in place. The former code finds by its function, without an index."""


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0013_output_files")]

    operations = [StemTables()]
