"""The pages in other languages: no English text, and numbers as people there write them."""

from dataclasses import dataclass

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.languages import LANGUAGES, build_english_pattern
from tests.web.test_axe import staff_session  # noqa: F401 - a fixture

# Every text of the page with what stands in templates, and every name that is read out or shown.
COLLECT = """
() => {
  const texts = new Set();
  const add = (text) => text && texts.add(text.replace(/\\s+/g, " ").trim());
  const names = ["aria-label", "title", "placeholder", "alt", "aria-description"];
  const walk = (node) => {
    if (node.nodeType === Node.TEXT_NODE) return add(node.data);
    if (node.matches?.("script, style, code, [lang]:not(html), .languages")) return;
    for (const name of names) add(node.getAttribute?.(name));
    if (node.id === "page-texts") Object.values(node.dataset).forEach(add);
    if (node.content instanceof DocumentFragment) walk(node.content);
    node.childNodes.forEach(walk);
  };
  walk(document.documentElement);
  return [...texts];
}
"""


@dataclass(frozen=True)
class Expected:
    """What the pages say in a language."""

    settings: str
    used: str
    numbers: list[str]
    messages: list[str]


# A narrow space that does not break stands between the thousands of French numbers.
EXPECTED_BY_LANGUAGE = {
    "de": Expected(
        settings="Einstellungen",
        used="8.192",
        numbers=["9,38k", "1,05M", "2,5 s", "0,0011", "3,50", "12.345"],
        messages=["0 Nachrichten", "1 Nachricht", "12.345 Nachrichten"],
    ),
    "fr": Expected(
        settings="Paramètres",
        used="8\u202f192",
        numbers=["9,38k", "1,05M", "2,5 s", "0,0011", "3,50", "12\u202f345"],
        messages=["0 message", "1 message", "12\u202f345 messages"],
    ),
}


def test_each_language_is_walked_through() -> None:
    assert sorted(EXPECTED_BY_LANGUAGE) == sorted(LANGUAGES)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("language", ["de", pytest.param("fr", marks=pytest.mark.slow)])
def test_no_english_text_is_on_the_pages_and_numbers_follow_the_page(
    page: Page,
    staff_session: Session,  # noqa: F811
    language: str,
) -> None:
    expected = EXPECTED_BY_LANGUAGE[language]
    # The browser itself stays English, so that only what follows the page is in the language.
    page.goto("/settings/")
    page.get_by_label("Language").select_option(language)
    expect(page.get_by_role("heading", name=expected.settings)).to_be_visible()
    english = build_english_pattern(language)
    assert english.fullmatch("Settings"), "or nothing could be found"
    chat = f"/c/{staff_session.pk}/"
    found = {}
    for path in (chat, "/new/", "/settings/", "/offline/", f"{chat}settings/"):
        page.goto(path)
        if path == chat:
            page.locator(".card summary").first.click()
            page.locator(".meter-button").click()
            expect(page.locator(".context-total")).to_contain_text(expected.used)
        texts = page.evaluate(COLLECT)
        assert len(texts) > 3
        found[path] = sorted(text for text in texts if english.fullmatch(text))
    assert not any(found.values()), found
    page.goto(chat)
    written = page.evaluate(
        """import("/static/chatcore/js/formats.js").then((formats) => [
          formats.formatCount(9380), formats.formatCount(1_050_000), formats.formatDuration(2500),
          formats.formatCost(0.0011), formats.formatCost(3.5), formats.formatNumber(12345),
        ])"""
    )
    assert written == expected.numbers
    plurals = page.evaluate(
        """import("/static/chatcore/js/texts.js").then(({ getText }) => [
          ...[0, 1, 12345].map((count) => getText("summarized", { count })),
        ])"""
    )
    assert plurals == expected.messages
