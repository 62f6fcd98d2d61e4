"""What the chat's templates need beyond Django: icons, token counts, readable JSON."""

import json
from decimal import Decimal

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from chatcore.sessions.token_estimate import format_tokens

register = template.Library()


@register.simple_tag
def icon(name: str) -> SafeString:
    """A drawing of the icon sheet; it says nothing to a screen reader, its button does."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("chatcore/icons.svg"),
        name,
    )


@register.filter
def tokens(count: object) -> str:
    """A token count as the meter writes it; empty when unknown."""
    return format_tokens(count) if isinstance(count, int) else ""


@register.filter
def price(amount: Decimal | None) -> str:
    """Dollars as they are written on a list: 3, 0.15, 0.075; a question mark when unknown."""
    if amount is None:
        return "?"
    return (
        f"{amount:.0f}"
        if amount == int(amount)
        else max(f"{amount:.2f}", f"{amount.normalize():f}", key=len)
    )


@register.filter
def pretty_json(text: str) -> str:
    """A tool call's arguments, indented when they are JSON, as they are when not."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        return text
