"""The pages in other languages: every text is translated, and the compiled files are fresh."""

import gettext
import re
from decimal import Decimal
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from babel.messages.catalog import Catalog
from django.contrib.auth.models import User
from django.test import Client
from django.utils.translation import ngettext, override

from chatcore.web import translations
from chatcore.web.templatetags.chat import money
from tests.support.languages import LANGUAGES, PLACE, read_language, translations_by_text

ROOT = Path(__file__).resolve().parents[2]
in_each_language = pytest.mark.parametrize("language", LANGUAGES)


@pytest.mark.heavy
@in_each_language
def test_every_sentence_is_translated(language: str) -> None:
    catalog = read_language(language)
    texts = set(translations_by_text(translations.collect_texts(ROOT)))
    translations_by_source = translations_by_text(catalog)
    missing = sorted(text[0] for text in texts if not all(translations_by_source.get(text, ("",))))
    assert missing == [], "run `chatcore translations` and fill in django.po"
    assert set(translations_by_source) == texts, "run `chatcore translations`"
    assert list(translations.find_untranslated_texts(catalog)) == []
    assert not [message.id for message in translations.list_messages(catalog) if message.fuzzy]


@in_each_language
def test_a_translation_keeps_the_places_for_values_and_the_markup(language: str) -> None:
    markup = re.compile(r"</?\w+>")
    for text, translated_texts in translations_by_text(read_language(language)).items():
        for translated in translated_texts:
            assert sorted(PLACE.findall(translated)) == sorted(PLACE.findall(text[-1])), text
            assert markup.findall(translated) == markup.findall(text[-1]), text


@in_each_language
def test_the_compiled_file_is_fresh_and_gettext_reads_it(language: str) -> None:
    catalog = read_language(language)
    content = translations.get_catalog_path(language).with_suffix(".mo").read_bytes()
    assert content == translations.compile_catalog(catalog), "run `chatcore translations`"
    compiled = gettext.GNUTranslations(BytesIO(content))
    models = translations_by_text(catalog)["%(count)s model", "%(count)s models"]
    assert compiled.ngettext("%(count)s model", "%(count)s models", 2) == models[1]


def test_french_has_its_spaces_and_apostrophes() -> None:
    """Before ; : ? ! and inside « », a space that does not break stands, and ’ is curved."""
    wrong = re.compile(r"(?<=[^\s;:?!]) [;:?!»]|« |\w'\w|[^\W\d_][?!»]|[^\W\d_];|«\w|\.\.\.")
    texts = [text for forms in translations_by_text(read_language("fr")).values() for text in forms]
    assert [text for text in texts if wrong.search(text)] == []


def test_french_counts_nothing_in_the_singular() -> None:
    with override("fr"):
        counted = [ngettext("%(count)s model", "%(count)s models", n) for n in (0, 1, 2)]
    assert counted == ["%(count)s modèle", "%(count)s modèle", "%(count)s modèles"]


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
    module = tmp_path / "compaction" / "cards.py"
    module.parent.mkdir()
    module.write_text('title = _("Runs")\n')
    assert translations.update_catalog("de", tmp_path) == ["%(n)s day", "Runs"]
    catalog = translations.read_catalog(translations.get_catalog_path("de"))
    assert set(translations_by_text(catalog)) == {("%(n)s day", "%(n)s days"), ("Runs",)}


@pytest.mark.all_rows
@pytest.mark.parametrize(
    ("language", "amount"), [("en", "$3.50"), ("de", "3,50 $"), ("fr", "3,50\N{NO-BREAK SPACE}$")]
)
def test_an_amount_has_its_sign_where_the_language_puts_it(language: str, amount: str) -> None:
    with override(language):
        assert money(Decimal("3.5")) == amount


def test_a_small_amount_has_as_many_digits_as_count() -> None:
    amounts = ["0.05", "0.04", "0.0039", "0", "1.239"]
    shown = [money(Decimal(amount)) for amount in amounts]
    assert shown == ["$0.05", "$0.04", "$0.0039", "$0.00", "$1.24"]


@pytest.mark.django_db
def test_the_browser_asks_for_a_language_and_the_settings_have_the_last_word(
    client: Client, user: User
) -> None:
    client.force_login(user)
    german = {"Accept-Language": "de-AT,de;q=0.9,en;q=0.5"}
    assert '<html lang="de"' in client.get("/settings/", headers=german).content.decode()
    assert (
        '<html lang="en"'
        in client.get("/settings/", headers={"Accept-Language": "eo"}).content.decode()
    )
    french = {"Accept-Language": "fr-CA"}
    assert '<html lang="fr"' in client.get("/settings/", headers=french).content.decode()
    assert client.post("/settings/language/", {"language": "de"})["HX-Refresh"] == "true"
    assert "Einstellungen" in client.get("/settings/").content.decode()
    client.post("/settings/language/", {"language": "en"})
    assert "Einstellungen" not in client.get("/settings/", headers=german).content.decode()
    client.post("/settings/language/", {"language": "xx"})
    assert "Einstellungen" in client.get("/settings/", headers=german).content.decode()
