"""The routes of webhooks in the REST API."""

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.webhooks import api

urlpatterns = build_url_patterns(
    {
        "api/v1/webhooks": api.WebhookListView,
        "api/v1/webhooks/<uuid:webhook_id>": api.WebhookDetailView,
        "api/v1/webhooks/<uuid:webhook_id>/deliveries": api.WebhookDeliveryListView,
    }
)
