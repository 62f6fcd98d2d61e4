"""The languages of the pages besides English, their catalogs, and English left on a page."""

import re
from collections.abc import Iterable

from babel.messages.catalog import Catalog
from django.conf import settings

from chatcore.web import translations

LANGUAGES = [code for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE]
PLACE = re.compile(r"%+\(\w+\)(?:\.\d)?[sdf]")
WORD = re.compile(r"[^\W\d_]{2}")
_ESCAPED_PLACE = re.compile(r"%%?\\\((\w+)\\\)[sd]")


def read_language(language: str) -> Catalog:
    return translations.read_catalog(translations.get_catalog_path(language))


def translations_by_text(catalog: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the translations of each text. A text with a plural has two forms."""
    return {
        make_tuple(message.id): make_tuple(message.string or "")
        for message in translations.list_messages(catalog)
    }


def make_tuple(text: str | Iterable[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def build_english_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern of the whole English texts that are others in this language."""
    texts = [
        text
        for forms, translated in translations_by_text(read_language(language)).items()
        for text in forms
        if text not in translated and WORD.search(PLACE.sub("", text))
    ]
    normal = [" ".join(text.split()).replace("%%(", "%(") for text in texts]
    return re.compile("|".join(_ESCAPED_PLACE.sub(".+", re.escape(text)) for text in normal))
