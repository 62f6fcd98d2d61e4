"""Where the embedded model is started, and where pages wait for it."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.contrib.local_model.state import load_local_model_state
from chatcore.extension import Extension, Place


class LocalModelExtension(Extension):
    companion = "chatcore.contrib.local_model.companion.EmbeddedModel"

    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        if place not in ("first_model", "first_model_ways"):
            return []
        local = load_local_model_state()
        if (local.kind == "absent") == (place == "first_model"):
            return []
        return [render_to_string(f"local_model/_{place}.html", {"local": local}, request)]
