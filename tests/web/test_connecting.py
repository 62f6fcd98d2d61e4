"""The page that connects a program, in a browser."""

import pytest
from playwright.sync_api import Page, expect

from models_registry.models import AiModel
from tests.conftest import Live

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_a_program_is_connected_by_keyboard_on_a_phone(
    page: Page, live: Live, model: AiModel
) -> None:
    page.set_viewport_size({"width": 375, "height": 700})
    page.goto(f"{live.url}/settings/programs/")
    page.get_by_role("radio", name="Codex").focus()
    page.keyboard.press("ArrowRight")
    block = page.locator(".program-block pre")
    expect(block).to_contain_text("ANTHROPIC_BASE_URL")
    page.get_by_role("button", name="Make a token").press("Enter")
    expect(block).to_contain_text("chat_")
    expect(page.get_by_text("Waiting for the program")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("combobox", name="Model").focus()
