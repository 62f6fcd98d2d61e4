"""Name the page that connects a program in the settings, and delete old notes of histories."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.contrib.compat.histories import delete_old_histories
from chatcore.extension import Chore, Extension, Place

PRUNE_SECONDS = 3_600


class Compat(Extension):
    def list_chores(self) -> list[Chore]:
        """Delete what was noted of requests that no other one has continued."""
        return [Chore(PRUNE_SECONDS, delete_old_histories, is_deletion=True)]

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        if place != "settings":
            return []
        return [render_to_string("compat/settings.html", {}, request)]
