"""Index stems, tool calls and attached files, for searches by any of the words."""

from typing import Any

from django.db import migrations

from chatcore.search.index import SearchIndex


class StemIndex(SearchIndex):
    """Make the index of stems. The former code finds what it needs in the other one."""

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Leave all indexes in place."""


class Migration(migrations.Migration):
    dependencies = [("chatcore", "0010_files_of_a_session")]

    operations = [StemIndex()]
