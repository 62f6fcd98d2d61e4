"""The admin pages of webhooks and of their deliveries."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from chatcore.admin.base import ChatcoreAdmin, ReadOnlyAdmin
from chatcore.base.keeping import is_kept
from chatcore.contrib.webhooks import deliveries as outbox
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery


@admin.register(Webhook)
class WebhookAdmin(ChatcoreAdmin):
    list_display = ("url", "owner", "is_active", "created_at")
    list_filter = ("is_active",)
    list_select_related = ("owner",)
    fields = ("url", "owner", "events", "is_active", "paused_until", "created_at")
    readonly_fields = ("owner", "paused_until", "created_at")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: only the API creates webhooks, because it shows their secret once."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return _is_free(obj) and super().has_change_permission(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: Webhook | None = None) -> bool:
        return _is_free(obj) and super().has_delete_permission(request, obj)


def _is_free(webhook: Webhook | None) -> bool:
    """Return whether nobody has to keep a webhook."""
    return webhook is None or not is_kept(webhook.owner_id)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    content_fields = ("payload", "error")
    list_display = (
        "event",
        "webhook",
        "status",
        "attempts",
        "response_status",
        "error",
        "created_at",
        "delivered_at",
    )
    list_filter = ("status", "created_at")
    list_select_related = ("webhook",)
    list_defer = ("payload",)
    sortable_by = ()
    actions = ("send_again",)

    def has_send_permission(self, request: HttpRequest) -> bool:
        """Return whether somebody may send: who may only look may not."""
        return bool(request.user.has_perm("webhooks.change_webhookdelivery"))

    @admin.action(description="Send again", permissions=["send"])
    def send_again(self, request: HttpRequest, deliveries: QuerySet[WebhookDelivery]) -> None:
        count = outbox.retry_deliveries(deliveries)
        self.message_user(request, f"{count} will be sent again.")
