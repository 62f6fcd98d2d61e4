"""A page that is guarded against hostile texts.

Nothing of them runs, no request leaves the origin, and the page goes on working.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Dialog, Locator, Page, Request, expect

from chatcore.base.truncation import clean_text
from chatcore.models import Message, Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.hostile import SAMPLE_FAMILIES, SAMPLE_TEXTS
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

AUDIT = Path(__file__).with_name("hostile_audit.js")
# Point at, focus and press every written text, but no link and no button.
POKE = """() => {
    const kinds = {
        pointerover: PointerEvent, mouseover: MouseEvent, focus: FocusEvent, click: MouseEvent,
        keydown: KeyboardEvent, toggle: Event, animationstart: Event, transitionend: Event,
        load: Event, error: Event,
    };
    const texts = ".prose *, .words, pre, .call-name, .diff *, .sent pre";
    for (const element of document.querySelectorAll(texts)) {
        if (element.closest("a[href], button, summary")) continue;
        for (const [kind, Kind] of Object.entries(kinds)) {
            element.dispatchEvent(new Kind(kind, { bubbles: kind === "click" }));
        }
    }
}"""
# Parse pages and partial pages of the server, eight at a time, and audit them without showing them.
AUDIT_PATHS = """async (paths) => {
    const problems = [];
    const take = async () => {
        for (let path = paths.shift(); path; path = paths.shift()) {
            const response = await fetch(path);
            if (response.status !== 200) problems.push(`${path}: ${response.status}`);
            const parsed = new DOMParser().parseFromString(await response.text(), "text/html");
            problems.push(...audit(parsed).map((wrong) => `${path}: ${wrong}`));
        }
    };
    await Promise.all(Array.from({ length: 8 }, take));
    return problems;
}"""


@pytest.fixture
def guarded_page(page: Page, live: Live) -> Iterator[Page]:
    """A page whose test fails when a text runs, opens a page or sends a request elsewhere.

    A request that the page's policy refused fails the test too.
    """
    incidents: list[str] = []
    page.add_init_script(path=AUDIT)

    def shut(dialog: Dialog) -> None:
        incidents.append(dialog.message)
        dialog.dismiss()

    own_origins = (live.url, "data:", "blob:")

    def watch_request(request: Request) -> None:
        if not request.url.startswith(own_origins):
            incidents.append(request.url)

    page.context.on("request", watch_request)
    page.context.on("page", lambda new_page: incidents.append(f"opened {new_page.url}"))
    page.context.on("dialog", shut)
    yield page
    assert page.evaluate("typeof ran") == "undefined"
    assert not incidents, incidents


def check_page_is_sound(page: Page) -> None:
    """Poke every text, and check that the page stays where it is and holds nothing forbidden."""
    address = page.url
    undrawn_formulas = page.locator(".prose .math:not([title], :has(.katex))")
    expect(undrawn_formulas).to_have_count(0)
    page.evaluate(POKE)
    wrong = page.evaluate("audit(document)")
    assert not wrong, "\n".join(wrong[:20])
    assert page.url == address
    assert page.locator("dialog[open]:not(#context-panel), :popover-open").count() == 0


def audit_paths(page: Page, paths: Sequence[str]) -> None:
    wrong = page.evaluate(AUDIT_PATHS, list(paths))
    assert not wrong, "\n".join(wrong[:20])


def check_page_works(page: Page, scripted: ScriptedModel) -> None:
    """Check that a user can still send a message and open a menu and the help.

    The elements are located by their markup, because roles are slow on a page of this length.
    """
    scripted.script(Reply(text="All is *well*."))
    answers = page.locator(".answer").count()
    page.locator(".composer textarea").fill("How are you?")
    page.locator(".composer textarea").press("Enter")
    newest = page.locator(".answer").nth(answers)
    expect(newest.locator(".prose em")).to_have_text("well")
    newest.hover()
    newest.locator("[data-act=menu]").click()
    expect(page.locator("#message-menu")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#message-menu")).to_be_hidden()
    page.locator(".sidebar [data-opens=help]").click()
    page.locator("#help [data-closes-dialog]").click()
    expect(page.locator("dialog[open]")).to_have_count(0)


def join_in_batches(size: int) -> list[str]:
    """Join the texts in groups of `size`.

    A text may swallow those after it; in one of the orders each text is the last of its group.
    """
    return [
        "\n\n".join(texts[at : at + size])
        for texts in SAMPLE_FAMILIES.values()
        for at in range(0, len(texts), size)
    ]


def show_text(text: str) -> str:
    """Return the text as a page shows it."""
    return re.sub(r"\r\n?", "\n", clean_text(text))


def read_texts(elements: Locator) -> list[str]:
    return list(elements.evaluate_all("all => all.map(each => each.textContent)"))


@pytest.fixture(autouse=True)
def widen_window(model: AiModel) -> None:
    """Give the model a window that holds all texts."""
    AiModel.objects.filter(pk=model.pk).update(context_window_size=1_000_000)


def store_texts(session: Session, texts: Sequence[str]) -> None:
    """Store each text as a question, an answer, its reasoning, and a tool call and its output."""
    rows = []
    for number, text in enumerate(texts):
        seq = 3 * number
        calls = [{"id": f"{number}{text}", "name": text[:128], "arguments": text}]
        rows += [
            Message(session=session, seq=seq + 1, role="user", content=text or "x"),
            Message(
                session=session,
                seq=seq + 2,
                role="assistant",
                content=text,
                reasoning=text,
                tool_calls=calls,
                model=clean_text(text)[:200],
            ),
            Message(
                session=session,
                seq=seq + 3,
                role="tool",
                content=text,
                tool_call_id=f"{number}{text}"[:255],
                tool_name=text[:128],
            ),
        ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(last_seq=len(rows), message_count=len(rows))


def split_into_chats(session: Session, size: int) -> Iterator[tuple[Session, list[str]]]:
    """Yield new chats with the texts for each, so many as one page shows."""
    for at in range(0, len(SAMPLE_TEXTS), size):
        yield (
            Session.objects.create(owner=session.owner, model=session.model),
            SAMPLE_TEXTS[at : at + size],
        )
