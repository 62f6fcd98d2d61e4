"""The pages that a search of the web has found stand with the answer."""

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.chatcore.test_tools_search_web import answer_searxng, serve
from tests.support.browsing import send_message
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_sources_stand_with_the_answer_at_once_and_later(
    page: Page, session: Session, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    Session.objects.filter(pk=session.pk).update(tools=["search_web"])
    scripted.script(
        Reply(tool_calls=[make_tool_call("search_web", {"query": "grey herons"})]),
        Reply(text="They stand in water."),
    )
    page.goto(f"/c/{session.pk}/")
    with serve(answer_searxng) as service:
        access = ("searxng", f"{service.url}/below")
        monkeypatch.setitem(settings.CHATCORE, "WEB_SEARCH", access)
        send_message(page, "What do grey herons do?")
        answer = page.locator(".answer", has_text="They stand in water.").last
        source = answer.get_by_role("list", name="Sources").get_by_role("link")
        expect(source).to_have_attribute("href", "https://birds.example/herons")
    page.reload()
    expect(source).to_have_text("Herons birds.example")
    expect(page.get_by_role("list", name="Sources")).to_have_count(1)
