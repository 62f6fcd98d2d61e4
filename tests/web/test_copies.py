"""Pages that show a whole chat: to be printed, and to be read by anybody who has a link."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.base.truncation import clean_text
from chatcore.contrib.sharing.links import create_share
from chatcore.models import Message, Session
from tests.support.browsing import store_exchange
from tests.support.hostile_pages import (
    check_page_is_sound,
    guarded_page,
    read_texts,
    show_text,
    split_into_chats,
    store_texts,
    widen_window,
)

__all__ = ["guarded_page", "widen_window"]

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def fill(session: Session) -> None:
    store_exchange(
        session, "Where is the **key**?", "Under the *mat*.\n\n```python\nprint(1)\n```\n\n$x^2$"
    )
    calls = [{"id": "c1", "name": "look_up", "arguments": '{"at":"door"}'}]
    rows = [
        {"seq": 3, "role": "assistant", "tool_calls": calls, "model": "scripted/test-model"},
        {"seq": 4, "role": "tool", "tool_call_id": "c1", "tool_name": "look_up", "content": "Mat"},
    ]
    for row in rows:
        Message.objects.create(session=session, **row)
    Session.objects.filter(pk=session.pk).update(
        title="The key",
        last_seq=4,
        message_count=4,
        compacted_summary="They look for a *key*.",
        compact_boundary_seq=3,
    )


@pytest.mark.slow
def test_a_chat_is_printed_whole(page: Page, session: Session) -> None:
    fill(session)
    page.add_init_script("window.print = () => { window.printed = document.body.innerText; };")
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Actions for The key").click()
    page.get_by_text("Export…").click()
    page.get_by_role("link", name="Print or save as PDF").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The key")
    expect(page.locator(".copy-messages .prose em")).to_have_text(["mat", "key"])
    expect(page.locator(".copy-messages .prose .katex").first).to_be_visible()
    expect(page.locator(".user .words")).to_have_text("Where is the **key**?")
    page.get_by_role("button", name="Print or save as PDF").click()
    page.wait_for_function("window.printed")
    printed = page.evaluate("window.printed")
    order = ["key", "mat", "Summary of the messages above", "look for", "look_up", "door", "Mat"]
    places = [printed.index(words) for words in order]
    assert places == sorted(places)


def test_a_chat_is_shared_and_the_link_taken_back(page: Page, session: Session) -> None:
    fill(session)
    page.goto(f"/c/{session.pk}/")
    page.get_by_role("button", name="Actions for The key").click()
    page.get_by_role("button", name="Share", exact=True).click()
    page.get_by_label("Show tool calls").check()
    page.get_by_role("button", name="Make a link").click()
    link = page.locator("#dialog .secret code").inner_text()
    expect(page.locator("#dialog .rows li")).to_have_count(1)
    page.locator("#dialog .rows a").evaluate("link => { link.textContent = 'w'.repeat(200) }")
    assert page.locator("#dialog").evaluate("each => each.scrollWidth <= each.clientWidth")
    assert page.context.browser is not None
    stranger = page.context.browser.new_context().new_page()
    stranger.goto(link)
    expect(stranger.get_by_role("heading", level=1)).to_have_text("The key")
    expect(stranger.locator(".prose em")).to_have_text("mat")
    expect(stranger.locator(".copy-tool pre").last).to_have_text("Mat")
    expect(stranger.locator(".prose .katex").first).to_be_visible()
    page.goto("/settings/")
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_role("button", name="Take back")).to_have_count(0)
    stranger.reload()
    expect(stranger.get_by_role("heading", level=1)).to_have_text("This link shows nothing")
    stranger.context.close()


@pytest.mark.slow
@pytest.mark.hostile
@pytest.mark.parametrize("kind", ["under a link", "in print"])
def test_hostile_texts_stay_texts(guarded_page: Page, session: Session, kind: str) -> None:
    for chat, texts in split_into_chats(session, 200):
        store_texts(chat, texts)
        Session.objects.filter(pk=chat.pk).update(title=clean_text(texts[0])[:200])
        chat.refresh_from_db()
        if kind == "in print":
            guarded_page.goto(f"/c/{chat.pk}/print/")
        else:
            token = create_share(chat, with_tools=True, with_files=True).token
            guarded_page.goto(f"/s/{token}/")
        expect(guarded_page.locator(".prose:not([data-shown])")).to_have_count(0)
        check_page_is_sound(guarded_page)
        words = [show_text(text) or "x" for text in texts]
        assert read_texts(guarded_page.locator(".user .words")) == words
