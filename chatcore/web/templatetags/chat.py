"""Template tags and filters for icons, token counts, prices and JSON."""

import json
from collections.abc import Mapping
from decimal import Decimal

from django import template
from django.conf import settings
from django.template import Context
from django.utils import formats
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from chatcore.base.token_estimate import format_tokens
from chatcore.extension import Place, build_page_parts
from chatcore.providers.protocols import load_protocol
from chatcore.providers.registry import choose_effort
from chatcore.web.advice import choose_advice
from models_registry.models import AiModel

register = template.Library()

# What the policies store with a turn whose request was trimmed; timeline.js has it too.
STORED_NOTICE = "Conversation history has been automatically trimmed"


@register.simple_tag
def icon(name: str) -> SafeString:
    """Render an icon of the page's icon sheet. Screen readers skip it; the button needs a text."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="#icon-{}"></use></svg>', name
    )


@register.simple_tag(takes_context=True)
def page_parts(context: Context, place: Place, subject: object = None) -> SafeString:
    """Render what apps show at a place of a page."""
    parts = build_page_parts(place, context["request"], subject)
    return format_html_join("", "{}", ((part,) for part in parts))


@register.filter
def tokens(count: object) -> str:
    """Format a number of tokens, as 41.2k; an unknown one as an empty text."""
    return _localize(format_tokens(count)) if isinstance(count, int) else ""


@register.filter
def thinks(model: AiModel) -> bool:
    """Return True for a model that is known to reason before it answers."""
    if load_protocol(model.provider.protocol).capabilities.has_messages_params:
        return False  # only where a request says so
    return model.reasoning.kind != "none" or bool(choose_effort(model))


@register.filter
def price(amount: Decimal | None) -> str:
    """Format dollars without needless zeros: 3, 0.15, 0.075; a question mark if unknown."""
    if amount is None:
        return "?"
    if amount == int(amount):
        return f"{amount:.0f}"
    cents = f"{amount:.2f}"
    exact = f"{amount.normalize():f}"
    return _localize(exact if len(exact) > len(cents) else cents)


@register.filter
def money(amount: Decimal) -> str:
    """Write an amount in the currency of the prices; small ones with more digits."""
    amount = round(amount, 2 if abs(amount) >= Decimal("0.1") else 4)
    digits = 2 if amount == round(amount, 2) else 4
    number = formats.number_format(amount, decimal_pos=digits)
    currency = settings.CHATCORE["CURRENCY"]
    if currency == "USD":
        return gettext("$%(cost)s") % {"cost": number}
    return f"{number} {currency}"


@register.filter
def advice(error: Mapping[str, object] | None) -> str:
    """Return the kind of advice after a turn's error."""
    return choose_advice(error)


@register.filter
def notice_words(notice: str) -> str:
    """Return a notice in the reader's language; a sentence of an operator's policy stays."""
    if notice != STORED_NOTICE:
        return notice
    return gettext("The oldest messages no longer fit, and the model does not see them.")


@register.filter
def pretty_json(text: str) -> str:
    """Indent the arguments of a tool call if they are JSON; else return them unchanged."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (TypeError, ValueError):
        return text


def _localize(number: str) -> str:
    """Return a number with the decimal sign of the reader's language."""
    return number.replace(".", formats.get_format("DECIMAL_SEPARATOR"))
