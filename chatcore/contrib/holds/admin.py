"""The admin page of legal holds."""

from django.contrib import admin
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatcore.admin.base import ChatcoreAdmin
from chatcore.contrib.holds.models import Hold, HoldQuerySet


@admin.register(Hold)
class HoldAdmin(ChatcoreAdmin):
    sidebar = ("people", "pin")
    list_display = ("user", "reason", "created_at", "created_by", "ended_at")
    list_filter = ("ended_at",)
    list_select_related = ("user", "created_by")
    autocomplete_fields = ("user",)
    readonly_fields = ("created_at", "created_by", "end_button")
    ordering = ("-created_at",)
    actions = ("end_now",)

    def has_delete_permission(self, request: HttpRequest, obj: Hold | None = None) -> bool:
        """Allow it for a hold that has ended."""
        if obj is None or obj.ended_at is None:
            return False
        return super().has_delete_permission(request, obj)

    def save_model(self, request: HttpRequest, obj: Hold, form: object, change: bool) -> None:
        """Note who has put the user on hold."""
        if not change:
            obj.created_by = request.user  # type: ignore[assignment]
        super().save_model(request, obj, form, change)

    @admin.action(description="End now", permissions=["change"])
    def end_now(self, request: HttpRequest, queryset: HoldQuerySet) -> None:
        """End the selected holds that last."""
        count = queryset.filter_active().update(ended_at=timezone.now())
        self.message_user(request, f"{count} ended.")

    @admin.display(description="act")
    def end_button(self, hold: Hold) -> SafeString | str:
        """Return a button for a hold that lasts. It sends what the list sends for one row."""
        if hold.pk is None or hold.ended_at is not None:
            return "–"
        return format_html(
            '<button formaction="{}" formmethod="post" formnovalidate name="action"'
            ' value="end_now">End now</button>'
            '<input type="hidden" name="_selected_action" value="{}">'
            '<input type="hidden" name="index" value="0">',
            reverse("admin:holds_hold_changelist"),
            hold.pk,
        )
