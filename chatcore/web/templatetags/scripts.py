"""The tag for the script of a page, which bin/build has made of many modules."""

import json
from pathlib import Path

from django import template
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()

FOLDER = "chatcore/built"
LIST = Path(__file__).parents[2] / "static" / FOLDER / "BUILT.json"
PARTS: dict[str, list[str]] = json.loads(LIST.read_text())["parts"]


@register.simple_tag
def script(name: str) -> SafeString:
    """Render the script of pages/NAME.js, and links to its parts, so that all come at once."""
    source = static(f"{FOLDER}/{name}.js")
    # Parts name each other as they are, without the hash that Django adds.
    folder = source.rpartition("/")[0]
    parts = format_html_join(
        "\n",
        '<link rel="modulepreload" href="{}/{}">',
        ((folder, part) for part in PARTS[f"{name}.js"]),
    )
    return format_html('<script src="{}" type="module"></script>\n{}', source, parts)
