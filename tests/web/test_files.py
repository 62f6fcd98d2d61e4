"""Files with a message in a real browser: chosen, dropped, pasted, refused, sent and shown."""

import base64
import re
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Page, expect

from chatcore.models import Attachment, Session
from models_registry.models import AiModel
from tests.support.browsing import send_message
from tests.support.sample_files import build_book
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


@pytest.mark.slow
def test_a_chip_says_before_sending_what_the_model_will_read(
    page: Page, model: AiModel, scripted: ScriptedModel, tmp_path: Path
) -> None:
    page.goto("/new/")
    page.locator(".composer input[type=file]").set_input_files(
        [  # type: ignore[arg-type]
            {"name": "book.pdf", "mimeType": "application/pdf", "buffer": build_book(60, 200)},
            {
                "name": "table.csv",
                "mimeType": "text/csv",
                "buffer": "商品名,価格\nりんご,120\n東京都,みかん\n".encode("shift_jis"),
            },
        ]
    )
    chips = page.locator(".chip .file-size")
    expect(chips.nth(0)).to_contain_text(re.compile(r"the model reads the first \d+ of 60 pages"))
    expect(chips.nth(1)).to_contain_text("read as shift_jis, which is a guess")
    send_message(page, "Well?")
    expect(page.locator(".answer .prose").first).to_be_visible()
    page.locator(".composer input[type=file]").set_input_files(
        [{"name": "b.pdf", "mimeType": "application/pdf", "buffer": build_book(60, 200)}]  # type: ignore[arg-type]
    )
    expect(chips).to_contain_text("pages")
    AiModel.objects.create(provider=model.provider, name="large", context_window_size=1_000_000)
    page.reload()
    expect(chips).to_contain_text("pages")


@pytest.mark.slow
def test_a_photograph_that_is_too_large_to_send_is_made_smaller_in_the_browser(
    page: Page, session: Session
) -> None:
    noise = Image.effect_noise((5000, 4000), 90).convert("RGB")
    data = BytesIO()
    noise.save(data, "JPEG", quality=95)
    assert len(data.getvalue()) > 10 * 1024 * 1024
    page.goto(f"/c/{session.pk}/")
    page.evaluate(
        """async (text) => {
            const { makePhotographFit } = await import("/static/chatcore/js/photographs.js");
            const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
            const file = new File([bytes], "big.jpg", { type: "image/jpeg" });
            window.fit = await makePhotographFit(file, 10 * 1024 * 1024);
            const picture = await createImageBitmap(window.fit);
            window.fitFacts = [window.fit.size, picture.width, window.fit.name];
        }""",
        base64.b64encode(data.getvalue()).decode(),
    )
    size, width, name = page.evaluate("window.fitFacts")
    assert size < 10 * 1024 * 1024
    assert (width, name) == (4096, "big.jpg")


def test_a_long_text_is_sent_as_a_file_in_one_step(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    clauses = "\n".join(f"Clause {number} of the contract." for number in range(1, 500))
    page.goto(f"/c/{session.pk}/")
    field = page.get_by_label("Your message")
    names = page.locator(".chip .file-name")
    field.fill("Is it fair? ")
    # A long paste becomes a file at once, and comes back as text.
    page.evaluate("(text) => navigator.clipboard.writeText(text)", clauses)
    page.keyboard.press("Control+v")
    expect(names).to_have_text(["pasted.txt"])
    expect(field).to_have_value("Is it fair? ")
    page.get_by_role("button", name="Undo").click()
    expect(names).to_have_count(0)
    expect(field).to_have_value(f"Is it fair? {clauses}")
    field.fill("Is it fair?")
    field.focus()
    page.keyboard.press("Control+v")
    expect(names).to_have_text(["pasted.txt"])
    page.keyboard.press("Control+z")
    expect(names).to_have_count(0)
    # What was typed is offered where no message, or not this model, takes it.
    offer = page.get_by_role("button", name="Attach it as a file")
    expect(offer).to_be_hidden()
    field.fill(clauses * 3)
    expect(page.locator(".as-file")).to_contain_text("longer than test-model can read at once")
    field.evaluate(
        "(field, text) => { field.value = text; field.dispatchEvent(new Event('input')); }",
        "words " * 50_000,
    )
    expect(page.locator(".as-file")).to_contain_text("longer than a message may be (256 KB)")
    field.press("Shift+Tab")
    expect(offer).to_be_focused()
    page.keyboard.press("Enter")
    expect(names).to_have_text(["pasted.txt"])
    expect(field).to_have_value("")
    expect(field).to_be_focused()
    expect(offer).to_be_hidden()
    page.keyboard.type("Sum it up.")
    page.keyboard.press("Enter")
    expect(page.locator(".user .file-name")).to_have_text("pasted.txt")
    expect(page.locator(".answer")).to_have_attribute("data-status", "complete")
    assert "words words" in str(scripted.requests[-1].json)
