"""A browser is below a path of the host with everything, beside a stranger at the top."""

import re
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browsing import ACTION_TIMEOUT, send_message
from tests.support.scripted_wire import Reply
from tests.support.served_below import PATH, Below, below

__all__ = ["below"]


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_signs_in_talks_and_administers_below_the_path(
    browser: Browser, below: Below
) -> None:
    below.scripted.script(Reply(text="A word from below."))
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-US")
    context.set_default_timeout(ACTION_TIMEOUT)
    # What another program at the top of the host has stored in this browser.
    strangers = ("sessionid", "csrftoken", "messages", "django_language")
    context.add_cookies(
        [{"name": name, "value": "strange", "url": below.host} for name in strangers]
    )
    page = context.new_page()
    paths: set[str] = set()
    problems: list[str] = []
    context.on("request", lambda request: paths.add(urlsplit(request.url).path))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("console", lambda line: problems.append(line.text) if line.type == "error" else None)

    page.goto(below.print_sign_in_link())
    page.wait_for_url(f"**{PATH}/new/")
    send_message(page, "Are you there?")
    expect(page.locator(".answer .prose")).to_have_text("A word from below.")
    page.wait_for_url(f"**{PATH}/c/*/")
    page.reload()
    expect(page.locator(".answer .prose")).to_have_text("A word from below.")
    page.get_by_role("button", name="Search in this chat").click()
    page.keyboard.type("word from")
    expect(page.locator("#palette mark").first).to_be_visible()
    page.keyboard.press("Escape")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")

    page.goto(f"{below.url}/settings/")
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("heading", name="Einstellungen")).to_be_visible()
    page.goto(f"{below.url}/admin/")
    expect(page.get_by_text("Übersicht").first).to_be_visible()
    page.goto(f"{below.url}/admin/models_registry/aimodel/?q=test-model")
    page.locator("#result_list tbody th a").first.click()
    page.get_by_role("button", name=re.compile("^(Sichern|Speichern)$")).first.click()
    expect(page.get_by_text("test-model").first).to_be_visible()

    assert problems == []
    assert [path for path in paths if not path.startswith(f"{PATH}/")] == []
    own = [cookie for cookie in context.cookies() if cookie["value"] != "strange"]
    assert {cookie["path"] for cookie in own} == {f"{PATH}/"}
    assert not {cookie["name"] for cookie in own}.intersection(strangers)
    assert len([1 for cookie in context.cookies() if cookie["value"] == "strange"]) == 4
    context.close()
