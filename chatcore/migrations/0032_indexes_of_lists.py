"""Index what the lists of the admin are ordered, filtered and searched by."""

from typing import Any

from django.db import migrations, models

from chatcore.base.databases.indexes import AddIndexWithoutLock

TITLES = "words_of_titles"


class AddTitleIndex(migrations.operations.base.Operation):
    """Index the letters of titles on PostgreSQL; SQLite reads its sessions."""

    reversible = True
    reduces_to_sql = True

    def state_forwards(self, app_label: str, state: Any) -> None:
        """Change nothing that Django knows."""

    def database_forwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Build it; what an interrupted attempt left is built again."""
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {TITLES}")
            schema_editor.execute(
                f"CREATE INDEX CONCURRENTLY {TITLES} ON chatcore_session"
                " USING gin (upper(title) gin_trgm_ops)"
            )

    def database_backwards(
        self, app_label: str, schema_editor: Any, from_state: Any, to_state: Any
    ) -> None:
        """Drop it."""
        if schema_editor.connection.vendor == "postgresql":
            schema_editor.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {TITLES}")

    def describe(self) -> str:
        """Return what it does."""
        return "Index the letters of titles"


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("chatcore", "0031_titles_by_models")]

    operations = [
        AddIndexWithoutLock(
            model_name="auditentry",
            index=models.Index(
                fields=["act"], name="audit_of_an_act", opclasses=["varchar_pattern_ops"]
            ),
        ),
        AddIndexWithoutLock(
            model_name="auditentry",
            index=models.Index(fields=["address"], name="audit_of_an_address"),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(fields=["-updated_at", "-id"], name="sessions_by_time"),
        ),
        AddIndexWithoutLock(
            model_name="session",
            index=models.Index(
                fields=["-updated_at", "-id"],
                condition=models.Q(auto_compact=False),
                name="sessions_not_compacting",
            ),
        ),
        AddTitleIndex(),
        AddIndexWithoutLock(
            model_name="storedresponse",
            index=models.Index(fields=["-created_at"], name="responses_by_time"),
        ),
        AddIndexWithoutLock(
            model_name="turn",
            index=models.Index(
                fields=["status", "-started_at"],
                condition=models.Q(status__in=["waiting", "failed", "cancelled", "interrupted"]),
                name="turns_not_completed",
            ),
        ),
        AddIndexWithoutLock(
            model_name="webhookdelivery",
            index=models.Index(fields=["-created_at", "-id"], name="deliveries_by_time"),
        ),
        AddIndexWithoutLock(
            model_name="webhookdelivery",
            index=models.Index(
                fields=["-created_at", "-id"],
                condition=models.Q(status="failed"),
                name="failed_deliveries",
            ),
        ),
    ]
