"""What goes on besides requests, what retention spares, and the button of the sidebar."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.extension import Chore, Extension, Place

PRUNE_SECONDS = 600.0


class Imports(Extension):
    arrivals = "imports.ImportedChat"
    worker_jobs = ("chatcore.contrib.imports.jobs",)

    def list_chores(self) -> list[Chore]:
        from chatcore.contrib.imports.jobs import prune_imports  # the readers take time to load

        return [Chore(PRUNE_SECONDS, prune_imports, is_deletion=True)]

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        if place != "sidebar":
            return []
        return [render_to_string("imports/_button.html", {}, request)]
