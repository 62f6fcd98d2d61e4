"""The pages as an app: its manifest and icons, and the page that is shown without a server."""

import json

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client
from playwright.sync_api import Browser, expect

from chatcore.models import Session
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.web.test_axe import find_objections


@pytest.mark.django_db
def test_the_manifest_names_icons_that_exist_and_needs_no_sign_in(client: Client) -> None:
    page = client.get("/login/").content.decode()
    assert '<link rel="manifest" href="/manifest.webmanifest">' in page
    manifest = json.loads(client.get("/manifest.webmanifest").content)
    assert (manifest["start_url"], manifest["scope"]) == ("/", "/")
    assert manifest["display"] == "standalone"
    assert {icon["purpose"] for icon in manifest["icons"]} == {"any", "maskable"}
    for icon in manifest["icons"]:
        path = finders.find(icon["src"].removeprefix("/static/"))
        assert isinstance(path, str)
        if icon["type"] == "image/png":
            with open(path, "rb") as file:
                width = int.from_bytes(file.read(24)[16:20])
            assert icon["sizes"] == f"{width}x{width}"


@pytest.mark.django_db
def test_the_service_worker_is_a_script_at_the_top_and_asked_for_each_time(client: Client) -> None:
    response = client.get("/service-worker.js")
    assert response["Content-Type"] == "text/javascript"
    assert "no-cache" in response["Cache-Control"]
    assert "script-src 'self'" in response["Content-Security-Policy"]


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
def test_without_a_connection_there_are_words_and_nothing_of_a_chat_is_kept(
    browser: Browser, live: Live, user: User, session: Session
) -> None:
    store_exchange(session, "A secret question", "A secret answer")
    client = Client()
    client.force_login(user)
    context = browser.new_context(base_url=live.url, locale="de-DE")
    cookie = client.cookies["sessionid"].value
    context.add_cookies([{"name": "sessionid", "value": cookie, "url": live.url}])
    page = context.new_page()
    page.goto(f"/c/{session.pk}/")
    page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    page.reload()
    expect(page.get_by_text("A secret answer")).to_be_visible()
    kept = page.evaluate(
        """async () => {
          const addresses = [];
          for (const name of await caches.keys())
            for (const request of await (await caches.open(name)).keys())
              addresses.push(new URL(request.url).pathname);
          return addresses;
        }"""
    )
    assert kept == ["/offline/"]
    page.locator(".composer textarea").fill("Half a thought")
    context.set_offline(True)
    page.goto(f"/c/{session.pk}/")
    expect(page.get_by_role("heading", name="Chatcore ist nicht erreichbar")).to_be_visible()
    assert find_objections(page) == []
    context.set_offline(False)
    page.get_by_role("link", name="Noch einmal versuchen").click()
    expect(page.get_by_text("A secret answer")).to_be_visible()
    expect(page.locator(".composer textarea")).to_have_value("Half a thought")
    context.close()
