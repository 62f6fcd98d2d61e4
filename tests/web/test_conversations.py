"""The list of chats, the search over them and their settings, in a real browser."""

import json
import re
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Page, Route, expect

from chatcore.models import Session
from chatcore.transfer import exporter
from models_registry.models import AiModel
from tests.support.browsing import send_message, store_exchange, wait_until
from tests.support.events import append_events
from tests.support.scripted_model import ScriptedModel

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def act(page: Page, title: str, name: str) -> None:
    """Choose an action from the menu of a chat in the list."""
    page.get_by_role("button", name=f"Actions for {title}").click()
    page.get_by_role("button", name=name, exact=True).click()


def test_a_pinned_chat_stands_first_and_an_archived_one_is_put_away(page: Page, user: User) -> None:
    for title in ("Bread", "Lisbon", "Taxes"):
        Session.objects.create(owner=user, title=title)
    page.goto("/new/")
    expect(page.locator(".chat-row > a")).to_have_text(["Taxes", "Lisbon", "Bread"])
    act(page, "Bread", "Pin")
    expect(page.locator(".chat-row > a")).to_have_text(["Bread", "Taxes", "Lisbon"])
    expect(page.locator(".chats-label").first).to_have_text("Pinned")
    act(page, "Taxes", "Archive")
    expect(page.locator(".chat-row > a")).to_have_text(["Bread", "Lisbon"])
    page.get_by_role("button", name="Archived").click()
    expect(page.locator(".chat-row > a")).to_have_text(["Taxes"])
    act(page, "Taxes", "Unarchive")
    expect(page.get_by_text("Archived chats will appear here.")).to_be_visible()
    page.get_by_role("button", name="Back to the chats").click()
    expect(page.locator(".chat-row > a")).to_have_text(["Bread", "Taxes", "Lisbon"])


def test_a_deleted_chat_comes_back_when_it_is_undone(
    page: Page, session: Session, user: User
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Precious")
    page.goto("/new/")
    act(page, "Precious", "Delete")
    expect(page.get_by_role("link", name="Precious")).to_be_hidden()
    page.get_by_role("button", name="Undo").click()
    expect(page.get_by_role("link", name="Precious")).to_be_visible()
    expect(page.locator("#snackbar")).to_have_text("Kept.")
    assert Session.objects.filter(pk=session.pk).exists()


@pytest.mark.slow
def test_a_deleted_chat_is_gone_for_good_when_the_page_is_left(
    page: Page, session: Session, user: User
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old")
    page.goto("/new/")
    act(page, "Old", "Delete")
    expect(page.get_by_role("link", name="Old")).to_be_hidden()
    page.goto("/settings/")
    wait_until(page, lambda: not Session.objects.filter(pk=session.pk).exists())


@pytest.mark.slow
def test_the_chat_on_the_page_can_be_deleted_and_opened_again(page: Page, session: Session) -> None:
    store_exchange(session, "One", "Two")
    Session.objects.filter(pk=session.pk).update(title="Shown")
    page.goto(f"/c/{session.pk}/")
    act(page, "Shown", "Delete")
    expect(page).to_have_url(re.compile(r"/new/$"))
    page.get_by_role("button", name="Undo").click()
    expect(page).to_have_url(re.compile(rf"/c/{session.pk}/$"))
    expect(page.locator(".message")).to_have_count(2)


def test_the_head_of_a_chat_renames_it_and_offers_what_its_row_does(
    page: Page, session: Session
) -> None:
    store_exchange(session, "What is 6 × 7?", "42")
    page.goto(f"/c/{session.pk}/")
    head = page.get_by_role("main").get_by_role("button", name="What to do with this chat")
    head.focus()
    page.keyboard.press("Enter")
    menu = page.locator("#head-menu")
    expect(menu.get_by_role("button", name="Rename")).to_be_focused()
    for name in ("Share", "Project", "Archive", "Delete"):
        expect(menu.get_by_role("button", name=name)).to_be_visible()
    page.keyboard.press("Enter")
    field = page.get_by_label("Title of the chat")
    expect(field).to_be_focused()
    field.fill("Sums")
    field.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sums")
    expect(page.locator("#chats")).to_contain_text("Sums")
    expect(head).to_be_focused()


def test_a_chat_goes_out_as_a_file_and_comes_in_again(
    page: Page, session: Session, tmp_path: Path
) -> None:
    store_exchange(session, "What is 6 × 7?", "42")
    Session.objects.filter(pk=session.pk).update(title="Sums")
    page.goto("/new/")
    page.get_by_role("button", name="Actions for Sums").click()
    page.get_by_text("Export…").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="With everything (JSON)").click()
    download.value.save_as(tmp_path / "sums.json")
    session.refresh_from_db()
    assert json.loads((tmp_path / "sums.json").read_text()) == json.loads(
        json.dumps(exporter.export_session(session), default=str)
    )
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Import").click()
    chooser.value.set_files(tmp_path / "sums.json")
    expect(page.locator(".answer .prose")).to_have_text("42")
    expect(page.locator(".chat-row > a")).to_have_text(["Sums", "Sums"])


@pytest.mark.slow
def test_a_file_that_is_no_chat_says_why_it_is_not_taken(
    page: Page, user: User, tmp_path: Path
) -> None:
    (tmp_path / "other.json").write_text('{"format": "cake"}')
    page.goto("/new/")
    page.locator("#import-file").set_input_files(tmp_path / "other.json")
    expect(page.locator("#snackbar")).to_contain_text(
        "Not imported: This is no export that is known here"
    )


@pytest.mark.slow
def test_the_palette_lists_chats_however_early_it_is_opened(page: Page, session: Session) -> None:
    page.add_init_script(
        """window.addEventListener("DOMContentLoaded", () => document.dispatchEvent(
            new KeyboardEvent("keydown", { key: "k", ctrlKey: true, bubbles: true })), true)"""
    )
    page.goto("/new/")
    palette = page.get_by_role("dialog", name="Search")
    expect(palette.get_by_role("option").first).to_be_visible()


def test_the_palette_finds_titles_and_words_and_leads_to_the_message(
    page: Page, session: Session, user: User
) -> None:
    store_exchange(
        session,
        *(f"message {number}" for number in range(1, 10)),
        "The word is Kumquat here",
        *("more " * 9 for _ in range(120)),
    )
    Session.objects.filter(pk=session.pk).update(title="Fruit")
    Session.objects.create(owner=user, title="A kumquat cake")
    page.goto("/new/")
    page.keyboard.press("Control+k")
    palette = page.get_by_role("dialog", name="Search")
    page.keyboard.type("kumquat")
    expect(palette.get_by_role("option")).to_have_text(
        [re.compile("A kumquat cake"), re.compile("The word is Kumquat here.*Fruit", re.DOTALL)]
    )
    expect(palette.locator("mark")).to_have_text("Kumquat")
    page.keyboard.press("ArrowDown")
    expect(palette.get_by_role("option", name="The word is")).to_have_attribute(
        "aria-selected", "true"
    )
    page.keyboard.press("Enter")
    expect(page.locator("[data-seq='10']")).to_be_in_viewport()
    expect(page.locator("[data-seq='10'][data-found]")).to_be_visible()
    assert page.evaluate("[...CSS.highlights.get('found')].map(String)") == ["Kumquat"]
    expect(page).to_have_url(re.compile(rf"/c/{session.pk}/$"))
    expect(page.locator("[data-seq='40']")).to_be_attached()
    expect(page.locator("[data-seq='130']")).not_to_be_attached()


def test_a_word_of_a_long_last_message_is_found_in_the_window_and_the_page_stays(
    page: Page, session: Session
) -> None:
    long = "The word is kumquat. " + "More words follow here. " * 400
    store_exchange(session, *("some words " * 60 for _ in range(20)), long)
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Search in this chat").click()
    page.keyboard.type("kumquat")
    options = page.get_by_role("dialog", name="Search").get_by_role("option")
    expect(options).to_contain_text(["kumquat"])  # before, the chat itself is listed
    page.keyboard.press("Enter")
    expect(page.locator("[data-found]")).to_be_visible()
    rect, height = page.evaluate(
        """() => [
          [...CSS.highlights.get("found")][0].getBoundingClientRect(),
          document.scrollingElement.scrollHeight,
        ]"""
    )
    assert 0 < rect["y"] < page.viewport_size["height"]  # type: ignore[index]
    assert height == page.viewport_size["height"]  # type: ignore[index]


def test_the_menu_in_the_head_pins_and_archives_what_the_list_shows_at_once(
    page: Page, session: Session, user: User
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Bread")
    Session.objects.create(owner=user, title="Lisbon")
    page.goto(f"/c/{session.pk}/")
    menu = page.get_by_role("button", name="What to do with this chat")
    for name, said, titles in [
        ("Pin", "Pinned", ["Bread", "Lisbon"]),
        ("Unpin", "No longer pinned", ["Lisbon", "Bread"]),
        ("Archive", "Archived", ["Lisbon"]),
        ("Unarchive", "Back in the list", ["Lisbon", "Bread"]),
    ]:
        menu.click()
        page.locator("#head-menu").get_by_role("button", name=name, exact=True).click()
        expect(page.locator("#head-menu")).to_be_hidden()
        expect(page.locator("#snackbar")).to_contain_text(said)
        expect(page.locator(".chat-row > a")).to_have_text(titles)


@pytest.mark.slow
def test_a_search_in_the_open_chat_moves_there_and_escape_leaves_it(
    page: Page, session: Session
) -> None:
    store_exchange(session, "The word is kumquat", *("more words " * 80 for _ in range(12)))
    page.goto(f"/c/{session.pk}/")
    expect(page.locator("[data-seq='1']")).not_to_be_in_viewport()
    page.get_by_role("button", name="Search in this chat").click()
    expect(page.get_by_label("This chat only")).to_be_checked()
    page.keyboard.type("kumqu")
    page.get_by_role("option", name="The word is kumquat").click()
    expect(page.locator("[data-seq='1']")).to_be_in_viewport()
    expect(page.get_by_role("dialog", name="Search")).to_be_hidden()
    page.keyboard.press("Control+k")
    expect(page.get_by_role("dialog", name="Search")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Search")).to_be_hidden()


def test_the_settings_of_a_chat_are_saved_and_errors_stand_beside_their_fields(
    page: Page, session: Session
) -> None:
    Session.objects.filter(pk=session.pk).update(params={"seed": 7})
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Settings of this chat").click()
    dialog = page.get_by_role("dialog", name="Settings of this chat")
    dialog.get_by_label("System prompt").fill("Be brief.")
    dialog.get_by_label("Temperature").fill("9")
    dialog.get_by_text("How it is done").click()
    dialog.get_by_label("Start at: % of the context window, or tokens (above 100)").fill("much")
    dialog.get_by_text("How it is done").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.locator(".field", has=page.get_by_label("Temperature"))).to_contain_text(
        "A number from 0 to 2."
    )
    expect(dialog.locator(".field", has=page.get_by_label("Start at"))).to_contain_text(
        "valid number"
    )
    dialog.get_by_label("Temperature").fill("0,5")
    dialog.get_by_label("Start at: % of the context window, or tokens (above 100)").fill("60")
    dialog.get_by_label("Policy").select_option("neurolink")
    dialog.get_by_label("Summarize automatically").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    session.refresh_from_db()
    assert (session.system_prompt, session.params, session.policy) == (
        "Be brief.",
        {"seed": 7, "temperature": 0.5},
        "neurolink",
    )
    assert (session.auto_compact, session.compact_threshold) == (False, 0.6)
    page.get_by_role("button", name="Settings of this chat").click()
    expect(
        dialog.get_by_label("Start at: % of the context window, or tokens (above 100)")
    ).to_have_value("60")
    expect(dialog.get_by_label("Temperature")).to_have_value("0.5")


def test_a_threshold_in_tokens_is_shown_and_stored_as_it_is(page: Page, session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(compact_threshold=6000)
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Settings of this chat").click()
    dialog = page.get_by_role("dialog", name="Settings of this chat")
    dialog.get_by_text("How it is done").click()
    field = dialog.get_by_label("Start at: % of the context window, or tokens (above 100)")
    expect(field).to_have_value("6000")
    field.fill("5000")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    session.refresh_from_db()
    assert session.compact_threshold == 5000


@pytest.mark.slow
def test_a_new_chat_begins_with_the_settings_it_was_given(page: Page, model: AiModel) -> None:
    page.goto("/new/")
    page.get_by_role("button", name="Settings of this chat").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile(r"/c/[0-9a-f-]{36}/$"))
    assert Session.objects.get().system_prompt == "Be brief."


@pytest.mark.slow
def test_a_chat_is_renamed_and_deleted_from_the_list(page: Page, session: Session) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old name")
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Actions for Old name").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title of the chat").press("Escape")
    expect(page.get_by_role("link", name="Old name")).to_be_visible()
    page.get_by_role("button", name="Actions for Old name").click()
    page.get_by_role("button", name="Rename").click()
    page.get_by_label("Title of the chat").fill("New name")
    page.get_by_label("Title of the chat").press("Enter")
    expect(page.get_by_role("link", name="New name")).to_be_visible()
    expect(page.locator(".chat-title")).to_have_text("New name")
    page.get_by_role("button", name="Actions for New name").click()
    page.get_by_role("button", name="Delete").click()
    expect(page).to_have_url(re.compile(r"/new/$"))
    expect(page.get_by_role("link", name="New name")).to_be_hidden()


@pytest.mark.slow
def test_nothing_in_the_list_vanishes_under_a_hand_when_it_is_refreshed(
    page: Page, session: Session, user: User
) -> None:
    Session.objects.filter(pk=session.pk).update(title="Old name")
    other = Session.objects.create(owner=user, title="Another")
    page.goto(f"/c/{session.pk}/")
    actions = page.get_by_role("button", name="Actions for Another")
    actions.click()
    expect(page.get_by_role("button", name="Rename")).to_be_visible()
    rename_on_server(page, session, "First name")
    page.get_by_role("button", name="Rename").click()
    title = page.get_by_label("Title of the chat")
    title.fill("Half")
    rename_on_server(page, session, "Second name")
    expect(title).to_be_focused()
    page.keyboard.type(" typed")
    expect(title).to_have_value("Half typed")
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Another")).to_be_visible()
    expect(page.get_by_role("link", name="Second name")).to_be_visible()
    other.refresh_from_db()
    assert other.title == "Another"
    page.get_by_label("Search chats").fill("noth")
    expect(page.get_by_role("link", name="Second name")).to_have_count(0)
    Session.objects.filter(pk=other.pk).update(title="And another")
    rename_on_server(page, session, "Something")
    expect(page.get_by_role("link", name="And another")).to_be_visible()
    expect(page.get_by_role("link", name="Something")).to_have_count(0)


def rename_on_server(page: Page, session: Session, title: str) -> None:
    """Change the chat's title on the server, and wait until the page has reloaded its list."""
    Session.objects.filter(pk=session.pk).update(title=title)
    with page.expect_response("**/chats/*"):
        append_events(session.pk, ("session.updated", {"fields": ["title"]}))


@pytest.mark.slow
def test_chats_stand_under_the_days_they_were_last_spoken_in(page: Page, user: User) -> None:
    now = timezone.now()
    for title, days in (("Bread", 0), ("Lisbon", 1), ("Taxes", 5), ("Boats", 400)):
        Session.objects.filter(pk=Session.objects.create(owner=user, title=title).pk).update(
            updated_at=now - timedelta(days=days)
        )
    page.goto("/new/")
    page.reload()  # the first page has told which zone it is in
    long_ago = now - timedelta(days=400)
    expect(page.locator(".chats-label")).to_have_text(
        ["Today", "Yesterday", "Last 7 days", f"{long_ago:%B %Y}"]
    )
    expect(page.locator(".chats-label, .chat-row > a")).to_have_text(
        [
            "Today",
            "Bread",
            "Yesterday",
            "Lisbon",
            "Last 7 days",
            "Taxes",
            f"{long_ago:%B %Y}",
            "Boats",
        ]
    )


@pytest.mark.slow
def test_a_chat_is_named_by_its_first_words_everywhere(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    page.goto("/new/")
    expect(page).to_have_title("New chat · Chatcore")
    send_message(page, "Bake bread\nwith rye, please")
    for title in (page.locator(".chat-title"), page.locator(".chat-row > a")):
        expect(title).to_have_text("Bake bread with rye, please")
    expect(page).to_have_title("Bake bread with rye, please · Chatcore")


@pytest.mark.slow
def test_words_typed_before_the_scripts_run_are_a_draft_too(page: Page, session: Session) -> None:
    held_routes: list[Route] = []
    page.route("**/built/chat*.js*", lambda route: held_routes.append(route))
    page.goto(f"/c/{session.pk}/", wait_until="commit")
    page.get_by_label("Your message").fill("Typed early")
    wait_until(page, lambda: bool(held_routes))
    held_routes[0].continue_()
    page.wait_for_load_state("load")
    page.unroute("**/built/chat*.js*")
    page.goto(f"/c/{session.pk}/")
    expect(page.get_by_label("Your message")).to_have_value("Typed early")


@pytest.mark.slow
def test_a_draft_stays_with_its_chat(page: Page, user: User, session: Session) -> None:
    other = Session.objects.create(owner=user, title="Lisbon", model=session.model)
    Session.objects.filter(pk=session.pk).update(title="Bread")
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.fill("How much rye?")
    page.get_by_role("link", name="Lisbon").click()
    expect(page).to_have_url(re.compile(str(other.pk)))
    page.wait_for_load_state()  # a draft needs the page's scripts
    expect(field).to_have_value("")
    field.fill("Which tram?")
    page.get_by_role("link", name="New chat", exact=True).first.click()
    expect(page).to_have_url(re.compile("/new/$"))
    page.wait_for_load_state()
    expect(field).to_have_value("")
    field.fill("Something new")
    page.get_by_role("link", name="Bread").click()
    expect(field).to_have_value("How much rye?")
    page.close()
    again = page.context.new_page()
    again.goto(f"/c/{other.pk}/")
    expect(again.get_by_label("Your message")).to_have_value("Which tram?")
    send_message(again, "Which tram goes there?")
    expect(again.locator(".user .words")).to_have_text("Which tram goes there?")
    again.reload()
    expect(again.get_by_label("Your message")).to_have_value("")
    again.goto("/settings/")
    again.get_by_role("button", name="Sign out").click()
    expect(again.get_by_role("heading", name="Sign in")).to_be_visible()
    assert (
        again.evaluate(
            "[localStorage, sessionStorage].flatMap(Object.keys)"
            ".filter((key) => key.startsWith('draft'))"
        )
        == []
    )


@pytest.mark.slow
def test_the_chats_of_a_zip_file_of_chatgpt_are_imported(page: Page, tmp_path: Path) -> None:
    file = tmp_path / "export.zip"
    message = {"author": {"role": "user"}, "content": {"parts": ["What is a heron?"]}}
    chat = {"title": "Herons", "mapping": {"a": {"message": message}}, "current_node": "a"}
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("conversations.json", json.dumps([chat]))
    page.goto("/new/")
    page.locator("#import-file").set_input_files(file)
    expect(page.locator(".user")).to_contain_text("What is a heron?")
    expect(page.locator("#chats")).to_contain_text("Herons")
