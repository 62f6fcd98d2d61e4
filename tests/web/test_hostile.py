"""Hostile texts stay texts in a chat: said live or stored, in cards and in failures."""

import json
from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from chatcore.base.truncation import clean_text
from chatcore.models import Message, Session, Turn
from compaction.models import CompactionRun
from tests.support.browsing import store_exchange
from tests.support.events import append_events
from tests.support.hostile_pages import (
    check_page_is_sound,
    check_page_works,
    guarded_page,
    join_in_batches,
    read_texts,
    show_text,
    split_into_chats,
    store_texts,
    widen_window,
)
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply
from tests.support.told_summaries import store_summaries

__all__ = ["guarded_page", "widen_window"]

pytestmark = [pytest.mark.browser, pytest.mark.hostile, pytest.mark.django_db(transaction=True)]


@pytest.mark.slow
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


@pytest.mark.slow
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
            **store_summaries(
                session, before=" ".join(every[number - 1].split()[::-1]), after=text
            ),
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
    guarded_page.get_by_text("Show all that is sent").click()
    expect(guarded_page.locator("#context-panel .sent-messages .sent").first).to_be_visible()
    assert every[0] in read_texts(guarded_page.locator("[data-sent=system] pre"))[0]
    check_page_is_sound(guarded_page)
    guarded_page.keyboard.press("Escape")
    check_page_works(guarded_page, scripted)


@pytest.mark.slow
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
        # However often and with however little it is asked.
        body = json.dumps({"error": {"message": text, "code": "x"}}).encode()
        scripted.default = Reply(status=400, body=body)
        guarded_page.locator(".composer textarea").fill("Go on")
        guarded_page.locator(".composer textarea").press("Enter")
        expect(guarded_page.locator(".turn-error")).to_have_count(number + 1)
        expect(guarded_page.locator(".turn-error").last).to_contain_text(text)
    append_events(session.pk, ("context.trimmed", {"notice": "<img src=x onerror=ran=1>"}))
    expect(guarded_page.locator(".notice").last).to_have_text("<img src=x onerror=ran=1>")
    check_page_is_sound(guarded_page)
    scripted.default = Reply(text="Fine.")
    check_page_works(guarded_page, scripted)
