"""Name the page that connects a program in the settings."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.extension import Extension, Place


class Compat(Extension):
    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        if place != "settings":
            return []
        return [render_to_string("compat/settings.html", {}, request)]
