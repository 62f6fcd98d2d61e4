"""What pages show of links: the entry in a chat's menu, and one's links in the settings."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from chatcore.contrib.sharing import pages
from chatcore.extension import Extension, Place


class Sharing(Extension):
    def build_page_parts(
        self, place: Place, request: HttpRequest, subject: object
    ) -> list[SafeString]:
        if place == "chat_menu":
            return [render_to_string("sharing/_menu_entry.html", {"id": subject}, request)]
        if place == "settings" and (links := pages.list_links(request)):
            return [render_to_string("sharing/_links.html", {"links": links}, request)]
        return []
