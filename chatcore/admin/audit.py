"""The admin page of the audit log, to read."""

from django.contrib import admin
from django.contrib.auth.models import User

from chatcore.admin.read_only import ReadOnlyAdmin
from chatcore.models import AuditEntry


@admin.register(AuditEntry)
class AuditEntryAdmin(ReadOnlyAdmin):
    list_display = ("at", "act", "person", "object_type", "object_id", "detail", "address")
    list_filter = ("at", "act", "object_type")
    search_fields = ("=object_id", "=address", "=actor__username")
    ordering = ("-pk",)
    fields = ("at", "act", "person", "object_type", "object_id", "detail", "address", "request_id")
    actions = None

    @admin.display(description="Who", ordering="actor")
    def person(self, entry: AuditEntry) -> str:
        """Name the person, or the number of one who is erased."""
        if entry.actor_id is None:
            return "–"
        actor = User.objects.filter(pk=entry.actor_id).first()
        return actor.get_username() if actor else f"user {entry.actor_id}, erased"
