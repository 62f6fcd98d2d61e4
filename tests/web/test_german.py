"""The pages in German: no English word of their texts, and numbers as Germans write them."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.web.test_axe import staff_session  # noqa: F401 - a fixture
from tests.web.test_translations import read_german, translations_by_text

PLACE = re.compile(r"%%?\\\((\w+)\\\)[sd]")
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


def build_english_pattern() -> re.Pattern[str]:
    """Return a pattern of the whole English texts whose German is another."""
    texts = [
        text
        for forms, german in translations_by_text(read_german()).items()
        for text in forms
        if text not in german
    ]
    normal = [" ".join(text.split()).replace("%%(", "%(") for text in texts]
    return re.compile("|".join(PLACE.sub(".+", re.escape(text)) for text in normal))


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_no_english_text_is_on_the_german_pages_and_numbers_follow_the_page(
    page: Page,
    staff_session: Session,  # noqa: F811
) -> None:
    # The browser itself stays English, so that only what follows the page is German.
    page.goto("/settings/")
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Einstellungen")).to_be_visible()
    english = build_english_pattern()
    assert english.fullmatch("Settings"), "or nothing could be found"
    chat = f"/c/{staff_session.pk}/"
    found = {}
    for path in (chat, "/new/", "/settings/", "/offline/", f"{chat}settings/"):
        page.goto(path)
        if path == chat:
            page.locator(".card summary").first.click()
            page.locator(".meter-button").click()
            expect(page.locator(".meter-used")).to_contain_text("8,19k")
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
    assert written == ["9,38k", "1,05M", "2,5 s", "0,0011", "3,50", "12.345"]
    plurals = page.evaluate(
        """import("/static/chatcore/js/texts.js").then(({ getText }) => [
          getText("summarized", { count: 1 }), getText("summarized", { count: 12345 }),
        ])"""
    )
    assert plurals == ["1 Nachricht", "12.345 Nachrichten"]
