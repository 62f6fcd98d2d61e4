"""How the pages look, in a real browser: on a phone, in light and in dark."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import PHONE, send_message, store_exchange
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
def test_a_phone_has_a_drawer_and_no_sideways_scroll(page: Page, session: Session) -> None:
    code = "```\n" + "a very long line of code " * 20 + "\n```"
    table = "| " + "wide and wider | " * 9 + "\n|" + "---|" * 9
    store_exchange(session, "One", f"{code}\n\n{table}")
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".sidebar")).to_be_hidden()
    page.get_by_role("button", name="Chats").click()
    expect(page.locator(".sidebar")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".sidebar")).to_be_hidden()
    expect(page.locator(".meter-used")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
    assert page.evaluate(
        "[document.documentElement, document.querySelector('.scroll')]"
        ".every(each => each.scrollWidth <= each.clientWidth)"
    )


@pytest.mark.slow
def test_the_list_of_chats_is_folded_until_it_is_kept_open(page: Page, session: Session) -> None:
    sidebar = page.locator(".sidebar")
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Keep this list open").click()
    expect(sidebar).to_be_hidden()
    expect(page.get_by_role("button", name="Chats")).to_be_focused()
    for path in (f"/c/{session.pk}/", "/settings/", "/projects/"):
        page.goto(path)
        expect(sidebar).to_be_hidden()
        page.get_by_role("button", name="Chats").click()
        expect(sidebar).to_be_visible()
    page.get_by_role("button", name="Keep this list open", pressed=False).click()
    page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    page.keyboard.press("Control+.")
    expect(sidebar).to_be_hidden()
    page.keyboard.press("Control+.")
    expect(page.get_by_role("button", name="Keep this list open", pressed=True)).to_be_focused()
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    expect(sidebar).to_be_hidden()
    page.keyboard.press("Control+.")
    page.set_viewport_size({"width": 1280, "height": 800})
    expect(sidebar).to_be_visible()


@pytest.mark.slow
def test_light_and_dark_follow_the_system_until_one_is_chosen(page: Page, session: Session) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto("/new/")
    expect(page.locator("body")).to_have_css("background-color", "rgb(25, 25, 24)")
    page.get_by_role("button", name="Switch between light and dark").click()
    expect(page.locator("body")).to_have_css("background-color", "rgb(253, 253, 252)")
    page.goto("/settings/")
    expect(page.get_by_label("Light", exact=True)).to_be_checked()
    page.get_by_text("Same as the system").click()
    expect(page.locator("body")).to_have_css("background-color", "rgb(25, 25, 24)")


COLORS = """() => {
    const seen = (window.seen = new Set());
    const look = () => {
        if (document.body) seen.add(getComputedStyle(document.body).backgroundColor);
        requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}"""


@pytest.mark.slow
def test_the_look_that_was_chosen_stays_and_no_other_flashes_before_it(
    page: Page, session: Session
) -> None:
    page.emulate_media(color_scheme="light")
    page.goto("/settings/")
    other = page.context.new_page()
    other.emulate_media(color_scheme="light")
    other.goto(f"/c/{session.pk}/")
    page.get_by_text("Dark", exact=True).click()
    expect(other.locator("body")).to_have_css("background-color", "rgb(25, 25, 24)")
    other.add_init_script(f"({COLORS})()")
    other.reload()
    expect(other.locator(".meter-used")).not_to_have_text("–")
    assert other.evaluate("[...window.seen]") == ["rgb(25, 25, 24)"]


@pytest.mark.slow
def test_a_phone_does_all_that_a_desk_does(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(tool_calls=[make_tool_call("calculate", {"expression": "6*7"})]),
        Reply(text="It is 42."),
    )
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    page.goto(f"/c/{session.pk}/")
    send_message(page, "6 × 7?")
    answer = page.locator(".answer").last
    expect(answer.locator(".prose")).to_have_text("It is 42.")
    check_no_sideways_scroll(page)
    answer.get_by_role("button", name="More actions").click()
    menu = page.locator("#message-menu")
    expect(menu.get_by_role("button", name="Delete…")).to_be_in_viewport(ratio=1)
    menu.get_by_role("button", name="Quote").click()
    expect(page.get_by_label("Your message")).to_have_value("> It is 42.\n\n")
    page.locator(".meter-button").click()
    expect(page.locator("#context")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Show all that is sent").click()
    expect(page.get_by_role("dialog", name="What the model sees now")).to_be_in_viewport(ratio=1)
    check_no_sideways_scroll(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Settings of this chat").click()
    dialog = page.get_by_role("dialog", name="Settings of this chat")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    page.get_by_role("button", name="Search in this chat").click()
    page.keyboard.type("42")
    expect(page.locator("#found").get_by_role("option").first).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Chats", exact=True).click()
    page.get_by_role("button", name="Actions for 6 × 7?").click()
    expect(page.get_by_role("button", name="Rename")).to_be_in_viewport(ratio=1)
    page.keyboard.press("Escape")
    page.get_by_role("link", name="alice").click()
    expect(page.get_by_role("heading", name="API tokens")).to_be_visible()
    check_no_sideways_scroll(page)


def check_no_sideways_scroll(page: Page) -> None:
    """Check that the page does not scroll sideways."""
    assert page.evaluate(
        "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    )
