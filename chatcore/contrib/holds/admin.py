"""The admin page of legal holds."""

from django.contrib import admin
from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin
from chatcore.contrib.holds.models import Hold


@admin.register(Hold)
class HoldAdmin(ChatcoreAdmin):
    sidebar = ("people", "pin")
    list_display = ("user", "reason", "created_at", "created_by", "ended_at")
    list_filter = ("ended_at",)
    list_select_related = ("user", "created_by")
    autocomplete_fields = ("user",)
    readonly_fields = ("created_at", "created_by")
    ordering = ("-created_at",)

    def has_delete_permission(self, request: HttpRequest, obj: Hold | None = None) -> bool:
        """Allow it for one hold that has ended: while its row stays, so does the account."""
        if obj is None or obj.ended_at is None:
            return False
        return super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Hold, form: object, change: bool) -> None:
        """Note who has put the user on hold."""
        if not change:
            obj.created_by = request.user  # type: ignore[assignment]
        super().save_model(request, obj, form, change)
