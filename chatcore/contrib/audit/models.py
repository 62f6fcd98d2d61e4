"""The audit log: who did what, on which object, when and from where. It holds no contents."""

from typing import Any, NoReturn

from django.conf import settings
from django.db import models


class AppendOnlyRows(models.QuerySet["AuditEntry"]):
    """Refuses what would change the log. Only its retention deletes (extension.py)."""

    def update(self, **values: object) -> NoReturn:
        """Refuse."""
        raise TypeError("An entry of the audit log is never changed.")

    def delete(self) -> NoReturn:
        """Refuse."""
        raise TypeError("Entries of the audit log are deleted by their retention only.")


class AuditEntry(models.Model):
    """One act of a person or of a command."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(auto_now_add=True, db_index=True)
    act = models.CharField(max_length=60, help_text="As session.rewound or sign_in.failed.")
    # Without a constraint: the log keeps the number of a person who is erased, and no name.
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
        help_text="Null: nobody was signed in, or a command of the server did it.",
    )
    object_type = models.CharField(max_length=60, blank=True)
    object_id = models.CharField(max_length=64, blank=True)
    detail = models.CharField(max_length=500, blank=True, help_text="Names and numbers, no texts.")
    address = models.CharField(max_length=45, blank=True, help_text="Where the request came from.")
    request_id = models.CharField(max_length=64, blank=True)

    objects = AppendOnlyRows.as_manager()

    outlives_people = True

    class Meta:
        db_table = "chatcore_auditentry"
        verbose_name_plural = "audit entries"
        indexes = [
            models.Index(fields=["object_type", "object_id"], name="audit_of_an_object"),
            models.Index(fields=["actor", "at"], name="audit_of_a_person"),
            models.Index(fields=["act"], name="audit_of_an_act", opclasses=["varchar_pattern_ops"]),
            models.Index(fields=["address"], name="audit_of_an_address"),
        ]

    def __str__(self) -> str:
        return f"{self.act} {self.object_type} {self.object_id}".strip()

    def save(self, *args: Any, **options: Any) -> None:
        """Store a new entry. Raises TypeError for one that is stored already."""
        if not self._state.adding:
            raise TypeError("An entry of the audit log is never changed.")
        super().save(*args, **options)

    def delete(self, *args: object, **options: object) -> NoReturn:
        """Refuse."""
        raise TypeError("Entries of the audit log are deleted by their retention only.")
