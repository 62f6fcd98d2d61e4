"""axe finds nothing to object to on any screen, light or dark, wide or narrow."""

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from playwright.sync_api import Page, expect

from chatcore.contrib.sharing.links import create_share
from chatcore.models import Session
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.browsing import PHONE, store_exchange
from tests.support.told_summaries import store_summaries

WIDE = {"width": 1280, "height": 860}
VENDOR = Path(__file__).resolve().parents[1] / "vendor"
RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}
# A screen is measured when its fonts are there, two frames were drawn (what depends on sizes, such
# as the tab stop of a box that scrolls, comes with the first), and nothing moves any more.
DRAWN = """
async () => {
  const finish = async () => {
    await document.fonts.ready;
    for (const _ of [1, 2]) await new Promise(requestAnimationFrame);
    const moving = document.getAnimations().slice(0, 50);
    await Promise.all(moving.map(each => each.finished.catch(() => {})));
  };
  // What turns for ever never finishes, and nothing else takes as long.
  await Promise.race([finish(), new Promise(resolve => setTimeout(resolve, 2000))]);
}
"""
# The chat's row, whose menu opens it, may be behind the drawer of a phone.
OPEN_SHARE_DIALOG = """
(path) => htmx.ajax("GET", path, { target: "#dialog", swap: "innerHTML" })
"""
TABS = ("Summary", "Changes", "Messages", "Kept as written")
ANSWER = (
    "A bread **raised** by yeast:\n\n"
    "```python\nprint('flour')  # and water\n```\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |"
)


def test_axe_is_the_one_that_was_reviewed() -> None:
    for line in json.loads((VENDOR / "VENDORED.json").read_text()):
        assert hashlib.sha256((VENDOR / line["file"]).read_bytes()).hexdigest() == line["sha256"]


def find_objections(page: Page) -> list[tuple[str, str]]:
    """Return the rules that axe finds broken on the page, each with its elements.

    axe is evaluated from outside, because the page's policy allows no other script.
    """
    page.evaluate(DRAWN)
    page.evaluate((VENDOR / "axe.min.js").read_text())
    violations: list[dict[str, Any]] = page.evaluate(
        "rules => axe.run(document, rules).then(result => result.violations)", RULES
    )
    return [
        (each["id"], node["html"][:160] + " | " + node["failureSummary"][:200])
        for each in violations
        for node in each["nodes"]
    ]


def list_screens(page: Page, session: Session) -> dict[str, Callable[[], Any]]:
    """Return for each screen the function that opens it."""

    chat = f"/c/{session.pk}/"
    temporary = Session.objects.create(
        owner=session.owner, model=session.model, title="A heron at the lake", temporary=True
    )
    store_exchange(temporary, "Which heron is it?", "A grey one.")

    def open_screen(path: str, *acts: Callable[[], Any]) -> Callable[[], None]:
        def go() -> None:
            page.goto(path)
            expect(page.locator("h1")).to_be_visible()
            if path == chat:  # its numbers and its card come from the server afterwards
                expect(page.locator(".meter-used")).not_to_have_text("–")
                expect(page.locator(".card")).to_be_visible()
            for act in acts:
                act()

        return go

    def card() -> None:
        page.locator(".card summary").first.click()

    def view(tab: str) -> None:
        page.get_by_role("tab", name=tab).click()
        expect(page.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")

    def menu() -> None:
        page.locator(".user").last.hover()
        page.locator(".user").last.get_by_role("button", name="More actions").click()

    def show_copy() -> None:
        expect(page.locator(".copy-page .prose").last).to_be_visible()
        expect(page.locator(".prose:not([data-shown])")).to_have_count(0)

    def meter() -> None:
        page.locator(".meter-button").click()

    return {
        "chat": open_screen(chat),
        "palette": open_screen(
            chat,
            lambda: page.keyboard.press("Control+k"),
            lambda: page.keyboard.type("bread"),
            lambda: expect(page.locator("#found mark").first).to_be_visible(),
        ),
        "chat settings": open_screen(
            chat,
            lambda: page.get_by_role("button", name="Settings of this chat").click(),
            lambda: expect(page.get_by_label("System prompt")).to_be_visible(),
        ),
        **{f"card, {tab}": open_screen(chat, card, partial(view, tab)) for tab in TABS},
        "card, edited": open_screen(
            chat, card, lambda: page.get_by_role("button", name="Edit the summary").click()
        ),
        "message menu": open_screen(
            chat, menu, lambda: expect(page.locator("#message-menu")).to_be_visible()
        ),
        "message edited": open_screen(
            chat,
            menu,
            lambda: page.locator("[data-menu='edit']").click(),
            lambda: expect(page.locator(".editor textarea")).to_be_focused(),
        ),
        "message deleted": open_screen(
            chat,
            menu,
            lambda: page.locator("[data-menu='delete']").click(),
            lambda: expect(page.locator("#dialog")).to_be_visible(),
        ),
        "meter": open_screen(chat, meter, lambda: expect(page.locator("#context")).to_be_visible()),
        "context panel": open_screen(
            chat,
            meter,
            lambda: page.get_by_role("button", name="Show all that is sent").click(),
            lambda: expect(page.locator("#context-panel .panel-facts")).to_contain_text("version"),
        ),
        "commands": open_screen(
            chat,
            lambda: page.get_by_label("Your message").press_sequentially("/"),
            lambda: expect(page.locator("#slash li").first).to_be_visible(),
        ),
        "new chat": open_screen("/new/"),
        "help": open_screen(
            "/new/",
            lambda: page.get_by_label("Your message").blur(),
            lambda: page.keyboard.press("?"),
            lambda: expect(page.locator("#help")).to_be_visible(),
        ),
        "settings": open_screen("/settings/"),
        "tool server added": open_screen(
            "/settings/",
            lambda: page.locator("#tool-servers").get_by_text("Add a server").click(),
        ),
        "model picker": open_screen(
            chat,
            lambda: page.locator(".picker-button").click(),
            lambda: expect(page.locator(".model").first).to_be_visible(),
        ),
        "chat shared": open_screen(
            chat,
            lambda: page.evaluate(OPEN_SHARE_DIALOG, f"{chat}share/"),
            lambda: page.locator("#dialog").get_by_role("button", name="Make a link").click(),
            lambda: expect(page.locator("#dialog .token-made")).to_be_visible(),
        ),
        "print page": open_screen(f"{chat}print/", show_copy),
        "shared page": open_screen(f"/s/{create_share(session).token}/", show_copy),
        "temporary chat chosen": open_screen(
            "/new/", lambda: page.get_by_label("Temporary chat").check()
        ),
        "temporary chat": open_screen(f"/c/{temporary.pk}/"),
    }


@pytest.fixture
def staff_session(user: User, session: Session) -> Session:
    """A chat with a summary, whose owner is a superuser."""
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    store_exchange(session, "What is bread?", "Food.", "How is bread made?", ANSWER)
    Session.objects.filter(pk=session.pk).update(
        title="Bread", compacted_summary="They spoke of bread.", compact_boundary_seq=3
    )
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        boundary_after=3,
        **store_summaries(session, after="They spoke of bread."),
        targets=[
            {
                "seq": 1,
                "role": "user",
                "tool": "",
                "method": "summarized",
                "chars_before": 14,
                "chars_after": 0,
            }
        ],
    )
    return session


def expect_none(objections_by_screen: dict[str, list[tuple[str, str]]]) -> None:
    complaints = [
        f"{name}: {rule}: {element}"
        for name, objections in objections_by_screen.items()
        for rule, element in objections
    ]
    assert not complaints, "\n".join(complaints)


@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("theme", "size"),
    [
        ("light", WIDE),
        pytest.param("dark", PHONE, marks=pytest.mark.slow),
        pytest.param("dark", WIDE, marks=pytest.mark.slow),
    ],
)
def test_no_screen_has_anything_axe_objects_to(
    page: Page, staff_session: Session, theme: Any, size: Any
) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    page.set_viewport_size(size)
    objections = {}
    for name, reach in list_screens(page, staff_session).items():
        reach()
        objections[name] = find_objections(page)
    if size == PHONE:
        page.goto(f"/c/{staff_session.pk}/")
        page.get_by_role("button", name="Chats", exact=True).click()
        expect(page.locator("#sidebar")).to_be_visible()
        objections["drawer"] = find_objections(page)
    AiModel.objects.update(is_active=False)
    page.goto("/new/")
    objections["onboarding"] = find_objections(page)
    page.context.clear_cookies()
    page.goto("/login/")
    objections["login"] = find_objections(page)
    expect_none(objections)


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_the_admin_adds_nothing_to_what_axe_objects_to_in_django(
    page: Page, staff_session: Session, theme: Any
) -> None:
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    run, model = CompactionRun.objects.get(), AiModel.objects.first()
    assert model
    objections = {}
    for path in (
        "",
        "chatcore/session/",
        f"chatcore/session/{staff_session.pk}/change/",
        f"compaction/compactionrun/{run.pk}/change/",
        "models_registry/aimodel/add/",
        f"models_registry/aimodel/{model.pk}/change/",
    ):
        page.goto(f"/admin/{path}")
        objections[path] = find_objections(page)
    expect_none(objections)
