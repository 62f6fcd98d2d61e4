from typing import Any

from django.db import migrations

from chatcore.search.index import SQLITE_TABLES, TABLE, SearchIndex, fill_sqlite_tables

FORMER_TABLE = (
    f"CREATE VIRTUAL TABLE {TABLE} USING fts5"
    "(content, content='chatcore_message', content_rowid='id', tokenize='trigram')"
)


class SmallerSearchIndex(SearchIndex):
    """On SQLite make the index anew, without the places of words. PostgreSQL's stays."""

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Make the former index, which the former code searches by phrases."""
        if schema_editor.connection.vendor == "sqlite":
            fill_sqlite_tables(schema_editor, SQLITE_TABLES | {TABLE: FORMER_TABLE})


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0004_fewer_indexes")]

    operations = [SmallerSearchIndex()]
