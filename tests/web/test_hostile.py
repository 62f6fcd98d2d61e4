"""Hostile texts stay texts wherever the page shows them.

Nothing of them runs, no request leaves the origin, and the page goes on working.
"""

import json
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from playwright.sync_api import Dialog, Locator, Page, Request, expect

from chatcore.models import Message, Session, Turn
from chatcore.sessions.truncation import clean_text
from compaction.models import CompactionRun
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.browsing import store_exchange
from tests.support.events import append_events
from tests.support.hostile import HOSTILE, SAMPLE_FAMILIES, SAMPLE_TEXTS
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.hostile, pytest.mark.django_db(transaction=True)]

AUDIT = Path(__file__).resolve().parents[1] / "support" / "hostile_audit.js"
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


SCROLL_CHATS = """async () => {
    for (let more; (more = document.querySelector(".chats-more")); ) {
        const swap = new Promise((resolve) => {
            document.addEventListener("htmx:afterSwap", resolve, { once: true });
        });
        more.scrollIntoView();
        await swap;
    }
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


def test_what_is_said_live_stays_words(
    guarded_page: Page, session: Session, scripted: ScriptedModel
) -> None:
    guarded_page.goto(f"/c/{session.pk}/")
    for number, text in enumerate(map(clean_text, join_in_batches(100))):
        call = make_tool_call(text[:60], text, id=text[:40] or "x")
        scripted.script(Reply(reasoning=text, tool_calls=[call]), Reply(text=text))
        guarded_page.locator(".composer textarea").fill(f"Say: {text}")
        guarded_page.locator(".composer textarea").press("Enter")
        expect(guarded_page.locator(".answer")).to_have_count(2 * number + 2)
        expect(guarded_page.locator(".answer").last).to_have_attribute("data-status", "complete")
    check_page_is_sound(guarded_page)
    contents = (
        session.messages.filter(role="user").order_by("seq").values_list("content", flat=True)
    )
    assert read_texts(guarded_page.locator(".user .words")) == [
        show_text(text) for text in contents
    ]
    check_page_works(guarded_page, scripted)


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


def test_what_was_stored_stays_words(
    guarded_page: Page, session: Session, scripted: ScriptedModel
) -> None:
    for chat, texts in split_into_chats(session, 20):
        store_texts(chat, texts)
        guarded_page.goto(f"/c/{chat.pk}/")
        expect(guarded_page.locator(".timeline .user")).to_have_count(len(texts))
        check_page_is_sound(guarded_page)
        for place in (".user .words", ".reasoning .words", ".call-result pre"):
            assert read_texts(guarded_page.locator(f".timeline {place}")) == [
                show_text(text) for text in texts
            ]
        assert "" not in guarded_page.locator(".timeline .answer > .prose").evaluate_all(
            "all => all.map(each => each.innerHTML)"
        )
        assert read_texts(guarded_page.locator(".timeline .call-name")) == [
            show_text(text[:128]) for text in texts
        ]
    check_page_works(guarded_page, scripted)


def create_chats(user: User, titles: Sequence[str]) -> list[Session]:
    now = timezone.now()
    return Session.objects.bulk_create(
        Session(
            owner=user, title=clean_text(text)[:200], updated_at=now - timedelta(minutes=number)
        )
        for number, text in enumerate(titles)
    )


def test_titles_stay_words_in_list_head_and_dialogs(guarded_page: Page, user: User) -> None:
    breaking = [
        text
        for text in SAMPLE_TEXTS
        if text.startswith(("</title>", "' onmouse", "%(title)s", "$&"))
    ]
    chats = create_chats(
        user, [*breaking, *(text for text in SAMPLE_TEXTS if text not in breaking)]
    )
    guarded_page.goto(f"/c/{chats[0].pk}/")
    guarded_page.evaluate(SCROLL_CHATS)
    assert read_texts(guarded_page.locator(".chat-row > a")) == [
        show_text(chat.title) or "New chat" for chat in chats
    ]
    check_page_is_sound(guarded_page)
    audit_paths(guarded_page, [f"/c/{chat.pk}/rename/" for chat in chats if '"' in chat.title])
    for chat in chats[: len(breaking)]:
        guarded_page.goto(f"/c/{chat.pk}/")
        expect(guarded_page).to_have_title(f"{chat.title} · Chatcore")
        expect(guarded_page.locator(".chat-title")).to_have_text(chat.title)
        choose_action(guarded_page, chat, "Rename")
        expect(guarded_page.get_by_label("Title of the chat")).to_have_value(chat.title)
        guarded_page.keyboard.press("Escape")
        choose_action(guarded_page, chat, "Delete")
        expect(guarded_page.locator("#snackbar")).to_contain_text(chat.title)
        guarded_page.locator("#snackbar button").click()
        expect(guarded_page.locator(".chat-title")).to_have_text(chat.title)
        check_page_is_sound(guarded_page)


def choose_action(page: Page, chat: Session, label: str) -> None:
    """Choose an action from the menu of a chat's row."""
    page.locator(f"#row-{chat.pk} .row-more").click()
    page.locator(f"#menu-{chat.pk}").get_by_text(label).click()


def test_cards_diffs_and_the_panel_stay_words(
    guarded_page: Page, session: Session, scripted: ScriptedModel
) -> None:
    every = [clean_text(text) for text in join_in_batches(30)]
    store_exchange(session, *(text for text in every for _ in range(2)))
    runs = [
        CompactionRun(
            session=session,
            trigger="manual",
            status="applied",
            policy=text[:64],
            boundary_after=2 * number + 2,
            model=text[:200],
            summary_before=" ".join(every[number - 1].split()[::-1]),
            summary_after=text,
            instructions=text,
            reason=text,
            error=text,
            targets=[
                {
                    "seq": 1,
                    "role": text,
                    "tool": text,
                    "method": "summarized",
                    "chars_before": 9,
                    "chars_after": 0,
                }
            ],
            stages_used=[text],
            state_after={
                "state": {"decisions": [text]},
                "memory": [text],
                "memory_summary": text,
            },
            created_at=timezone.now() + timedelta(seconds=number),
        )
        for number, text in enumerate(every)
    ]
    CompactionRun.objects.bulk_create(runs[-20:])
    Session.objects.filter(pk=session.pk).update(
        compacted_summary=every[-1], compact_boundary_seq=2 * len(every), system_prompt=every[0]
    )
    guarded_page.goto(f"/c/{session.pk}/")
    expect(guarded_page.locator(".card")).to_have_count(min(20, len(every)))
    guarded_page.evaluate(
        "for (const fold of document.querySelectorAll('.card > details')) fold.open = true"
    )
    for tab in ("summary", "changes", "targets", "state"):
        expect(guarded_page.locator(".card [role=tab][aria-selected]")).not_to_have_count(0)
        guarded_page.evaluate(
            "name => document.querySelectorAll(`.card [data-tab=${name}]`)"
            ".forEach(tab => tab.click())",
            tab,
        )
        check_page_is_sound(guarded_page)
    guarded_page.locator(".meter-button").click()
    guarded_page.get_by_text("Show the whole context").click()
    expect(guarded_page.locator("#context-panel .sent-messages .sent").first).to_be_visible()
    assert every[0] in read_texts(guarded_page.locator("[data-sent=system] pre"))[0]
    check_page_is_sound(guarded_page)
    guarded_page.keyboard.press("Escape")
    check_page_works(guarded_page, scripted)


def test_what_is_searched_and_found_stays_words(guarded_page: Page, session: Session) -> None:
    store_texts(session, HOSTILE)
    guarded_page.goto(f"/c/{session.pk}/")
    words = [" ".join(clean_text(text).split())[:200] for text in HOSTILE]
    audit_paths(guarded_page, [f"/search/?{urlencode({'q': each})}" for each in words])
    audit_paths(
        guarded_page, [f"/chats/?{urlencode({'q': each, 'after': each})}" for each in words[:100]]
    )
    guarded_page.keyboard.press("Control+k")
    field = guarded_page.locator("#palette [role=combobox]")
    for text in (
        "onerror ran",
        "<script>",
        "</title>",
        '"><img',
        "javascript:ran=1",
        "{{ %}",
        "<b id=dialog>",
        "\\href",
    ):
        with guarded_page.expect_response("**/search/*"):
            field.fill(text)
        expect(field).to_have_value(text)
        wrong = guarded_page.evaluate("audit(document)")
        assert not wrong, wrong[:20]
    field.fill("<script>ran=1</script> after")
    expect(guarded_page.locator("#found .found").first).to_be_visible()
    guarded_page.keyboard.press("Enter")
    expect(guarded_page.locator("#palette")).to_be_hidden()
    expect(guarded_page.locator("[data-found]")).to_be_visible()
    check_page_is_sound(guarded_page)


def test_failures_and_notices_stay_words(
    guarded_page: Page, session: Session, scripted: ScriptedModel
) -> None:
    for chat, texts in split_into_chats(session, 60):
        for number, text in enumerate(map(clean_text, texts)):
            error = {"type": "provider_rejected", "detail": text}
            turn = Turn.objects.create(
                session=chat,
                status="failed",
                lease_until=chat.created_at,
                error=error,
                notices=[text],
            )
            Message.objects.create(
                session=chat, turn=turn, seq=number + 1, role="user", content="x"
            )
        guarded_page.goto(f"/c/{chat.pk}/")
        assert read_texts(guarded_page.locator(".turn-error p > span:first-child")) == [
            show_text(text) for text in texts
        ]
        check_page_is_sound(guarded_page)
    guarded_page.goto(f"/c/{session.pk}/")
    for number, text in enumerate(
        (
            "Bad <img src=x onerror=ran=1>",
            "No </p></div><script>ran=1</script>",
            '" onmouseover=ran=1',
        )
    ):
        scripted.script(
            Reply(status=400, body=json.dumps({"error": {"message": text, "code": "x"}}).encode())
        )
        guarded_page.locator(".composer textarea").fill("Go on")
        guarded_page.locator(".composer textarea").press("Enter")
        expect(guarded_page.locator(".turn-error")).to_have_count(number + 1)
        expect(guarded_page.locator(".turn-error").last).to_contain_text(text)
    append_events(session.pk, ("context.trimmed", {"notice": "<img src=x onerror=ran=1>"}))
    expect(guarded_page.locator(".notice").last).to_have_text("<img src=x onerror=ran=1>")
    check_page_is_sound(guarded_page)
    check_page_works(guarded_page, scripted)


def create_providers(model: AiModel) -> None:
    """Create providers and models with hostile names."""
    for number, text in enumerate(map(clean_text, SAMPLE_TEXTS)):
        name = f"{number} {text}"[:64].strip()
        provider = Provider.objects.create(
            name=name, protocol="openai", base_url=model.provider.base_url, api_key_env=text[:32]
        )
        if number % 8 == 0:
            AiModel.objects.create(
                provider=provider, name=text[:100] or "x", context_window_size=8192
            )


def test_settings_stay_words(
    guarded_page: Page, session: Session, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    User.objects.filter(pk=user.pk).update(
        is_staff=True, is_superuser=True, username='"><img src=x onerror=ran=1>'
    )
    create_providers(model)
    Session.objects.filter(pk=session.pk).update(
        system_prompt="</textarea><script>ran=1</script>",
        policy='"><img src=x>',
        params={"a": "'>\"<b>"},
    )
    guarded_page.goto("/settings/")
    expect(guarded_page.locator(".provider")).to_have_count(len(SAMPLE_TEXTS) + 1)
    check_page_is_sound(guarded_page)
    scripted.script(
        Reply(
            status=401,
            body=b'{"error": {"message": "<img src=x onerror=ran=1>", "code": "</p><script>"}}',
        )
    )
    guarded_page.locator(f"#provider-{model.provider_id}").get_by_role(
        "button", name="Test"
    ).click()
    expect(guarded_page.locator(f"#tried-{model.provider_id} .field-error")).to_be_visible()
    check_page_is_sound(guarded_page)
    guarded_page.goto(f"/c/{session.pk}/")
    guarded_page.locator("[data-chat-settings]").click()
    expect(guarded_page.get_by_label("System prompt")).to_have_value(
        "</textarea><script>ran=1</script>"
    )
    wrong = guarded_page.evaluate("audit(document)")
    assert not wrong, wrong[:20]
    guarded_page.keyboard.press("Escape")
    guarded_page.locator(".composer textarea").press_sequentially("/model ")
    expect(guarded_page.locator("#slash li").first).to_be_visible()
    wrong = guarded_page.evaluate("audit(document)")
    assert not wrong, wrong[:20]
