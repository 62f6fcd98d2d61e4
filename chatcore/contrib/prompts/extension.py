"""Show prompts in the settings."""

from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.extension import Extension, Place


class Prompts(Extension):
    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        from chatcore.contrib.prompts import pages

        return [pages.render_prompts(request)] if place == "settings" else []
