"""The admin page of turns."""

from django.contrib import admin

from chatcore.admin.base import ReadOnlyAdmin
from chatcore.admin.texts import SESSION_TEXTS
from chatcore.models import Turn


@admin.register(Turn)
class TurnAdmin(ReadOnlyAdmin):
    content_fields = ("notices", "tools", "recalled", "error")
    list_display = ("id", "session", "status", "started_at", "finished_at", "lease_until")
    list_filter = ("status", "started_at")
    list_select_related = ("session",)
    list_defer = ("notices", "tools", "recalled", "clearing", *SESSION_TEXTS)
    sortable_by = ()
    ordering = ("-started_at",)
