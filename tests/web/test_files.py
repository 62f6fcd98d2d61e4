"""Files with a message in a real browser: chosen, dropped, pasted, refused, sent and shown."""

import base64
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Attachment, Session
from models_registry.models import AiModel
from tests.support.browsing import send_message
from tests.support.scripted_model import ScriptedModel

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
DROP = """([text, name]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    const chat = document.querySelector("chat-stream");
    for (const kind of ["dragenter", "dragover", "drop"]) {
        chat.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true }));
    }
}"""
PASTE = """async (bytes) => {
    const data = Uint8Array.from(atob(bytes), (letter) => letter.charCodeAt(0));
    const image = new Blob([data], { type: "image/png" });
    await navigator.clipboard.write([new ClipboardItem({ "image/png": image })]);
}"""


pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_files_go_with_a_message_and_stand_in_it(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    page.goto(f"/c/{session.pk}/")
    page.locator(".composer input[type=file]").set_input_files(
        [  # type: ignore[arg-type]
            {"name": "dot.png", "mimeType": "image/png", "buffer": PIXEL},
            {
                "name": "a program.bin",
                "mimeType": "application/octet-stream",
                "buffer": b"\0\1\2" * 500,
            },
        ]
    )
    expect(page.locator(".chip")).to_have_count(2)
    expect(page.locator(".chip[data-failed]")).to_contain_text("Only texts, PDF files and images")
    send_message(page, "What is this?")
    expect(page.locator("#snackbar")).to_contain_text("Not sent: a program.bin")
    page.get_by_role("button", name="Remove a program.bin").click()
    page.evaluate(DROP, ["The notes say: forty-two.", "notes.txt"])
    expect(page.locator(".chip .file-name")).to_have_text(["dot.png", "notes.txt"])
    page.get_by_label("Your message").press("Enter")
    expect(page.locator(".user .words")).to_have_text("What is this?")
    expect(page.locator(".user .thumbnail img")).to_have_js_property("naturalWidth", 1)
    with page.expect_download() as download:
        page.locator(".user .file").click()
    assert download.value.path().read_text() == "The notes say: forty-two."
    expect(page.locator(".chip")).to_have_count(0)
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    assert "forty-two" in str(scripted.requests[-1].json)


@pytest.mark.slow
def test_a_new_chat_takes_files_and_a_message_may_be_nothing_else(
    page: Page, model: AiModel, scripted: ScriptedModel
) -> None:
    page.goto("/new/")
    page.evaluate(DROP, ["Alone", "alone.md"])
    expect(page.locator(".chip")).to_contain_text("alone.md")
    assert not Session.objects.exists()
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".user .file-name")).to_have_text("alone.md")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    page.reload()
    expect(page.locator(".user .file-name")).to_have_text("alone.md")
    assert Attachment.objects.get().message


def drag(page: Page, file: Path, *steps: tuple[str, int, int]) -> None:
    """Drag a file as a user does: into the window, over parts of it, and drop it."""
    browser = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(file)], "dragOperationsMask": 1}
    for kind, x, y in steps:
        browser.send("Input.dispatchDragEvent", {"type": kind, "x": x, "y": y, "data": data})


@pytest.mark.slow
def test_a_dragged_file_is_shown_where_it_may_fall(
    page: Page, session: Session, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("The notes say: forty-two.")
    page.goto(f"/c/{session.pk}/")
    place = page.get_by_text("Drop files to attach them")
    expect(place).to_be_hidden()
    drag(
        page,
        tmp_path / "notes.txt",
        ("dragEnter", 700, 300),
        ("dragOver", 700, 300),
        ("dragOver", 700, 780),
    )
    expect(place).to_be_visible()
    drag(page, tmp_path / "notes.txt", ("dragOver", 100, 400))  # over the list of chats
    expect(place).to_be_hidden()
    drag(page, tmp_path / "notes.txt", ("dragOver", 700, 300), ("drop", 700, 300))
    expect(page.locator(".chip .file-name")).to_have_text(["notes.txt"])
    expect(place).to_be_hidden()
    expect(page.get_by_label("Your message")).to_be_focused()


@pytest.mark.slow
def test_an_image_is_pasted_and_words_stay_words(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    field.focus()
    page.evaluate(PASTE, base64.b64encode(PIXEL).decode())
    page.keyboard.press("Control+v")
    expect(page.locator(".chip")).to_contain_text("image.png")
    expect(page.locator(".chip img")).to_have_js_property("naturalWidth", 1)
    page.evaluate("navigator.clipboard.writeText('What color is it?')")
    page.keyboard.press("Control+v")
    expect(field).to_have_value("What color is it?")
    expect(page.locator(".chip")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page.locator(".user .thumbnail img")).to_have_js_property("naturalWidth", 1)
    expect(page.locator(".user .words")).to_have_text("What color is it?")


@pytest.mark.slow
def test_files_are_chosen_with_the_button_and_are_still_there_after_a_reload(
    page: Page, session: Session, tmp_path: Path
) -> None:
    for name in ("one.txt", "two.txt"):
        (tmp_path / name).write_text(name)
    page.goto(f"/c/{session.pk}/")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Attach files").click()
    with page.expect_response("**/attachments"):
        chooser.value.set_files([tmp_path / "one.txt", tmp_path / "two.txt"])
    expect(page.locator(".chip .file-name")).to_have_text(["one.txt", "two.txt"])
    expect(page.locator(".chip[data-sending]")).to_have_count(0)
    page.reload()
    expect(page.locator(".chip .file-name")).to_have_text(["one.txt", "two.txt"])
    page.get_by_role("button", name="Remove one.txt").click()
    expect(page.locator(".chip .file-name")).to_have_text(["two.txt"])
    send_message(page, "Only the second")
    expect(page.locator(".user .file-name")).to_have_text(["two.txt"])
