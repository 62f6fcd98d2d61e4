"""The pages in German: every text is translated, and the compiled file is up to date."""

import gettext
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from django.contrib.auth.models import User
from django.test import Client

from chatcore.web import translations

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"%+\(\w+\)[sd]")


def translations_by_text(catalog: Catalog) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the translations of each text. A text with a plural has two forms."""
    return {
        make_tuple(message.id): make_tuple(message.string or "")
        for message in translations.list_messages(catalog)
    }


def make_tuple(text: str | Iterable[str]) -> tuple[str, ...]:
    return (text,) if isinstance(text, str) else tuple(text)


def read_german() -> Catalog:
    return translations.read_catalog(translations.get_catalog_path("de"))


def test_every_sentence_has_its_german() -> None:
    catalog = read_german()
    texts = set(translations_by_text(translations.collect_texts(ROOT)))
    translations_by_source = translations_by_text(catalog)
    missing = sorted(text[0] for text in texts if not all(translations_by_source.get(text, ("",))))
    assert missing == [], "run `chatcore translations` and fill in django.po"
    assert set(translations_by_source) == texts, "run `chatcore translations`"
    assert list(translations.find_untranslated_texts(catalog)) == []


def test_a_translation_keeps_the_places_for_values() -> None:
    for text, german_texts in translations_by_text(read_german()).items():
        for german in german_texts:
            assert sorted(PLACE.findall(german)) == sorted(PLACE.findall(text[-1])), text


def test_the_compiled_file_is_fresh_and_gettext_reads_it() -> None:
    content = translations.get_catalog_path("de").with_suffix(".mo").read_bytes()
    assert content == translations.compile_catalog(read_german()), "run `chatcore translations`"
    german = gettext.GNUTranslations(BytesIO(content))
    assert german.gettext("Settings") == "Einstellungen"
    assert german.ngettext("%(count)s model", "%(count)s models", 2) == "%(count)s Modelle"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    texts = {
        ('A "quoted"\nline\\',): ("Zwei\tTeile",),
        ("one", "many"): ("eins", "viele"),
    }
    catalog = Catalog(locale="de")
    catalog.add('A "quoted"\nline\\', "Zwei\tTeile")
    catalog.add(("one", "many"), ("eins", "viele"))
    translations.write_catalog(tmp_path / "django.po", catalog)
    assert translations_by_text(translations.read_catalog(tmp_path / "django.po")) == texts


def test_new_texts_wait_for_a_translation_and_old_ones_go(tmp_path: Path, settings: Any) -> None:
    settings.LOCALE_PATHS = [tmp_path / "locale"]
    template = tmp_path / "chatcore" / "page.html"
    template.parent.mkdir()
    template.write_text('{% load i18n %}\n  {% trans "Good morning" %}\n')
    assert translations.update_catalog("de", tmp_path) == ["Good morning"]
    template.write_text(
        "<p>\n    {% blocktrans count n=n %}{{ n }} day{% plural %}{{ n }} days{% endblocktrans %}"
    )
    assert translations.update_catalog("de", tmp_path) == ["%(n)s day"]
    catalog = translations.read_catalog(translations.get_catalog_path("de"))
    assert set(translations_by_text(catalog)) == {("%(n)s day", "%(n)s days")}


@pytest.mark.django_db
def test_the_browser_asks_for_a_language_and_the_settings_have_the_last_word(
    client: Client, user: User
) -> None:
    client.force_login(user)
    german = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}
    assert '<html lang="de">' in client.get("/settings/", headers=german).content.decode()
    assert (
        '<html lang="en">'
        in client.get("/settings/", headers={"Accept-Language": "fr"}).content.decode()
    )
    assert client.post("/settings/language/", {"language": "de"})["HX-Refresh"] == "true"
    assert "Einstellungen" in client.get("/settings/").content.decode()
    client.post("/settings/language/", {"language": "en"})
    assert "Einstellungen" not in client.get("/settings/", headers=german).content.decode()
    client.post("/settings/language/", {"language": "xx"})
    assert "Einstellungen" in client.get("/settings/", headers=german).content.decode()
