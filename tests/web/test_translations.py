"""The pages in German: nothing is left in English, and what is compiled is what was translated."""

import gettext
import re
from io import BytesIO
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatcore.web import translations

ROOT = Path(__file__).resolve().parents[2]
PLACE = re.compile(r"%+\(\w+\)[sd]")


def test_every_sentence_has_its_german() -> None:
    known = translations.read_catalog(translations.get_catalog_path("de"))
    missing = sorted(
        key[0] for key in translations.find_keys(ROOT) if not all(known.get(key, ("",)))
    )
    assert missing == [], "run `chatcore translations` and fill in locale/de/LC_MESSAGES/django.po"
    assert set(known) == translations.find_keys(ROOT), "run `chatcore translations`"


def test_a_translation_keeps_the_places_for_values() -> None:
    for key, texts in translations.read_catalog(translations.get_catalog_path("de")).items():
        for text in texts:
            assert sorted(PLACE.findall(text)) == sorted(PLACE.findall(key[-1])), key


def test_the_compiled_file_is_fresh_and_gettext_reads_it() -> None:
    path = translations.get_catalog_path("de")
    assert path.with_suffix(".mo").read_bytes() == translations.compile_catalog(
        translations.read_catalog(path), "de"
    ), "run `chatcore translations`"
    german = gettext.GNUTranslations(BytesIO(path.with_suffix(".mo").read_bytes()))
    assert german.gettext("Settings") == "Einstellungen"
    assert german.ngettext("%(count)s model", "%(count)s models", 2) == "%(count)s Modelle"


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    catalog: translations.Catalog = {
        ('A "quoted"\nline\\',): ("Zwei\tTeile",),
        ("one", "many"): ("eins", "viele"),
    }
    translations.write_catalog(tmp_path / "django.po", catalog, "de")
    assert translations.read_catalog(tmp_path / "django.po") == catalog


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
