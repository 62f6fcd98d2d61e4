"""The route of sent requests."""

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.sent_requests.api import SentRequestView

urlpatterns = build_url_patterns(
    {"api/v1/messages/<int:message_id>/request": SentRequestView},
)
