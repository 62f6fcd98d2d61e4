"""A temporary chat as its user sees it: chosen at the beginning, named in the header, kept."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.browsing import send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_temporary_chat_is_in_no_list_until_it_is_kept(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Under the mat."))
    page.goto("/new/")
    page.get_by_label("Temporary chat").check()
    send_message(page, "Where is the key?")
    expect(page.locator(".answer .prose")).to_have_text("Under the mat.")
    expect(page.locator(".temporary-badge")).to_be_visible()
    expect(page.get_by_label("Temporary chat")).to_have_count(0)
    assert Session.objects.get().temporary
    page.reload()
    expect(page.locator(".temporary-badge")).to_be_visible()
    expect(page.locator(".chat-row")).to_have_count(0)
    page.get_by_role("button", name="Keep this chat").click()
    expect(page.locator(".chat-row")).to_have_count(1)
    expect(page.locator(".temporary-badge")).to_be_hidden()
    assert not Session.objects.get().temporary
