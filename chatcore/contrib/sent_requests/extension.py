"""What the page shows of sent requests, and when they are deleted."""

from collections.abc import Sequence

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.contrib.sent_requests.records import prune_requests
from chatcore.extension import Chore, Extension, Place

PRUNE_SECONDS = 600.0
TEMPLATES = {
    "message_menu": "sent_requests/menu_entry.html",
    "chat_dialogs": "sent_requests/dialog.html",
}


class SentRequests(Extension):
    def list_chores(self) -> Sequence[Chore]:
        return [Chore(PRUNE_SECONDS, prune_requests, is_deletion=True)]

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        template = TEMPLATES.get(place)
        return [render_to_string(template, request=request)] if template else []
