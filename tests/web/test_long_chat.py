"""A long chat in a real browser: the page holds a part of it, and the reader's place stays."""

from datetime import timedelta

import pytest
from django.utils import timezone
from playwright.sync_api import APIResponse, Page, Route, expect

from chatcore.models import Message, Session
from chatcore.turns import control
from compaction.models import CompactionRun
from models_registry.models import AiModel
from tests.support.browsing import send_message, store_exchange, wait_until
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.told_summaries import store_summaries

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

MAX_MESSAGES = 200
SCROLLER = "document.querySelector('.scroll')"


def fill_chat(session: Session, messages: int) -> None:
    """Store that many messages, short and long, and a model whose window holds them all."""
    AiModel.objects.update(context_window_size=1_000_000)
    store_exchange(
        session,
        *(
            f"message {number}. " + "Some words. " * (number * 7 % 60)
            for number in range(1, messages + 1)
        ),
    )


def read_message_range(page: Page) -> tuple[int, int]:
    """Return the seqs of the first and the last message on the page."""
    seqs = page.eval_on_selector_all(
        ".timeline > [data-seq]", "all => all.map(each => Number(each.dataset.seq))"
    )
    assert seqs == sorted(seqs)
    assert len(seqs) <= MAX_MESSAGES
    return seqs[0], seqs[-1]


def wait_for_earlier(page: Page, first: int) -> None:
    """Wait until the page holds a message from before this one."""
    wait_until(page, lambda: read_message_range(page)[0] < first)


def scroll(page: Page, *, by: int) -> None:
    page.evaluate(f"by => {SCROLLER}.scrollBy({{ top: by, behavior: 'instant' }})", by)


def read_back(page: Page, seq: int) -> None:
    """Scroll up until the message is on the page, then to it."""
    while (first := read_message_range(page)[0]) > seq:
        page.evaluate(f"{SCROLLER}.scrollTop = 0")
        wait_for_earlier(page, first)
    page.locator(f"[data-seq='{seq}']").scroll_into_view_if_needed()


def read_top(page: Page, seq: int) -> float:
    """Return the position of a message on the screen once everything is drawn."""
    page.evaluate(
        "() => new Promise(drawn => requestAnimationFrame(() => requestAnimationFrame(drawn)))"
    )
    box = page.locator(f"[data-seq='{seq}']").bounding_box()
    assert box
    return box["y"]


@pytest.mark.slow
def test_earlier_messages_come_by_themselves_and_what_is_read_stays_where_it_is(
    page: Page, session: Session
) -> None:
    fill_chat(session, 700)
    page.goto(f"/c/{session.pk}/")
    expect(page.locator("[data-seq='700']")).to_be_in_viewport()
    assert read_message_range(page) == (641, 700)
    for _ in range(8):
        first = read_message_range(page)[0]
        page.locator(f"[data-seq='{first + 4}']").scroll_into_view_if_needed()
        before = read_top(page, first + 4)
        wait_for_earlier(page, first)
        assert abs(read_top(page, first + 4) - before) < 8
    assert read_message_range(page)[1] < 700
    for _ in range(4):
        last = read_message_range(page)[1]
        page.locator(f"[data-seq='{last - 4}']").scroll_into_view_if_needed()
        before = read_top(page, last - 4)
        wait_until(page, lambda last=last: read_message_range(page)[1] > last)  # type: ignore[misc]
        assert abs(read_top(page, last - 4) - before) < 8
    page.get_by_role("button", name="To the newest message").click()
    expect(page.locator("[data-seq='700']")).to_be_in_viewport()
    expect(page.locator("[data-more='after']")).to_be_hidden()


@pytest.mark.slow
def test_a_chat_opens_at_its_end_though_a_long_draft_takes_room(
    page: Page, session: Session
) -> None:
    fill_chat(session, 60)
    page.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").fill("A line of many.\n" * 60)
    expect(page.locator("[data-seq='60'] .foot")).to_be_in_viewport(ratio=1)
    page.reload()
    expect(page.get_by_label("Your message")).to_have_value("A line of many.\n" * 60)
    expect(page.locator("[data-seq='60'] .foot")).to_be_in_viewport(ratio=1)
    expect(page.get_by_role("button", name="To the newest message")).to_be_hidden()


@pytest.mark.slow
def test_each_of_many_boundaries_has_its_card(page: Page, session: Session) -> None:
    fill_chat(session, 400)
    now = timezone.now()
    facts = {"session": session, "trigger": "after_response", "policy": "oneclaw"}
    applied_runs = [
        CompactionRun(
            **facts,
            status="applied",
            boundary_after=1 + 10 * number,
            **store_summaries(session, after=f"Number {number}."),
        )
        for number in range(1, 40)
    ]
    skipped_runs = [
        CompactionRun(**facts, status="skipped", reason="Too little.") for _ in range(25)
    ]
    for number, run in enumerate([*applied_runs, *skipped_runs]):
        run.created_at = now + timedelta(seconds=number)
        run.save()
    Session.objects.filter(pk=session.pk).update(
        compacted_summary="Number 39.", compact_boundary_seq=391
    )
    page.goto(f"/c/{session.pk}/")
    card = page.locator(".card")
    expect(page.locator(".card:not([data-superseded])")).to_have_count(1)
    expect(page.locator(".card + [data-seq='391']")).to_have_count(1)
    page.keyboard.press("Home")
    expect(page.locator("[data-seq='1']")).to_be_in_viewport()
    expect(page.locator(".card + [data-seq='11']")).to_have_count(1)
    expect(page.locator(".card + [data-seq='21']")).to_have_count(1)
    card.first.locator("summary").click()
    expect(card.first.locator(".card-summary")).to_have_text("Number 1.")


@pytest.mark.slow
def test_the_keys_lead_to_both_ends_and_a_button_to_what_is_earlier(
    page: Page, session: Session
) -> None:
    fill_chat(session, 500)
    page.goto(f"/c/{session.pk}/")
    page.locator(".timeline").click(position={"x": 5, "y": 5})
    page.keyboard.press("Home")
    expect(page.locator("[data-seq='1']")).to_be_in_viewport()
    expect(page.get_by_role("button", name="Earlier messages")).to_be_hidden()
    page.keyboard.press("End")
    expect(page.locator("[data-seq='500']")).to_be_in_viewport()
    page.route("**/messages/?before=*", lambda route: route.abort())
    page.evaluate(f"{SCROLLER}.scrollTop = 0")
    expect(page.locator("#snackbar")).to_contain_text("cannot be reached")
    page.unroute("**/messages/?before=*")
    page.get_by_role("button", name="Earlier messages").press("Enter")
    wait_until(page, lambda: read_message_range(page) == (381, 500))
    expect(page.get_by_role("button", name="Earlier messages")).to_be_focused()


@pytest.mark.slow
def test_what_is_said_while_one_reads_long_ago_waits_at_the_end(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_chat(session, 500)
    page.goto(f"/c/{session.pk}/")
    read_back(page, 250)
    before = read_message_range(page), read_top(page, 250)
    scripted.script(Reply(text="Said **meanwhile**."))
    control.wait_for_turn(control.start_turn(session, content="From elsewhere").pk, 20)
    newest = page.get_by_role("button", name="New messages")
    expect(newest).to_be_visible()
    assert (read_message_range(page), read_top(page, 250)) == before
    newest.click()
    expect(page.locator(".user .words").last).to_have_text("From elsewhere")
    expect(page.locator(".answer .prose").last).to_have_text("Said meanwhile.")
    expect(page.locator(".answer").last).to_be_in_viewport()
    expect(newest).to_be_hidden()


@pytest.mark.slow
def test_sending_leads_from_long_ago_to_the_answer(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_chat(session, 400)
    page.goto(f"/c/{session.pk}/?at=100")
    expect(page.locator("[data-seq='100']")).to_be_in_viewport()
    scripted.script(Reply(text="I am down there."))
    send_message(page, "Where are you?")
    expect(page.get_by_text("I am down there.")).to_be_in_viewport()
    expect(page.locator("[data-seq='402']")).to_be_attached()
    read_message_range(page)


@pytest.mark.slow
def test_an_answer_goes_on_while_one_reads_long_ago(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_chat(session, 500)
    words = [f"word{number} " for number in range(60)]
    scripted.script(Reply(chunks=words, chunk_delay=0.15, reasoning="Counting."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Count")
    expect(page.locator(".answer .prose").last).to_contain_text("word3")
    read_back(page, 200)
    assert read_message_range(page)[1] < 500
    page.get_by_role("button", name="To the newest message").click()
    expect(page.locator(".answer .prose").last).to_contain_text("word3")
    expect(page.locator(".answer").last).to_have_attribute("data-status", "complete")
    expect(page.locator(".answer .prose").last).to_have_text("".join(words).strip())
    expect(page.locator(".reasoning .words").last).to_have_text("Counting.")


@pytest.mark.slow
def test_an_answer_that_ends_while_its_page_is_loaded_is_whole(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    """The page came as it was before the end, and stood there empty for good."""
    fill_chat(session, 300)
    scripted.script(Reply(chunks=["one ", "two ", "three "], cut_after=2, hang=True))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Count")
    expect(page.locator(".answer .prose").last).to_have_text("one two")
    read_back(page, 20)
    assert read_message_range(page)[1] < 300
    held: list[tuple[Route, APIResponse]] = []
    page.route("**/messages/?*", lambda route: held.append((route, route.fetch())))
    page.get_by_role("button", name="To the newest message").click()
    wait_until(page, lambda: bool(held))
    page.get_by_role("button", name="Stop").click()
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    for route, response in held:
        assert 'data-status="streaming"' in response.text()
        route.fulfill(response=response)
    answer = page.locator(".answer").last
    expect(answer).to_have_attribute("data-status", "interrupted")
    expect(answer.locator(".prose")).to_have_text("one two")


@pytest.mark.slow
def test_what_is_being_edited_is_still_there_when_one_comes_back(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    fill_chat(session, 700)
    page.goto(f"/c/{session.pk}/?at=301")
    message = page.locator("[data-seq='301']")
    expect(message).to_be_in_viewport()
    message.hover()
    message.get_by_role("button", name="Edit").click()
    editor = page.get_by_label("Edit the message")
    editor.fill("Half a thought")
    for _ in range(
        3
    ):  # where the focus is stays on the page: nothing is loaded that would not fit beside it
        page.evaluate(f"{SCROLLER}.scrollTop = {SCROLLER}.scrollHeight")
        page.wait_for_load_state("networkidle")
    assert read_message_range(page)[0] <= 301
    page.get_by_role("button", name="To the newest message").click()
    expect(page.locator("[data-seq='700']")).to_be_in_viewport()
    expect(message).not_to_be_attached()
    read_back(page, 301)
    expect(editor).to_have_value("Half a thought")
    editor.press("Control+Enter")
    expect(page.locator(".user .words").last).to_have_text("Half a thought")
    expect(page.locator(".answer .prose").last).to_have_text("Hello from the scripted model.")
    expect(page.locator(".answer").last).to_be_in_viewport()


@pytest.mark.slow
def test_a_link_to_a_message_long_ago_leads_there(page: Page, session: Session) -> None:
    fill_chat(session, 500)
    Session.objects.filter(pk=session.pk).update(
        compacted_summary="All of it.", compact_boundary_seq=101, context_version=1
    )
    CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        boundary_after=101,
        **store_summaries(session, after="All of it."),
    )
    Message.objects.filter(session=session, seq=9).update(pinned=True)
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".card")).to_have_count(0)
    page.locator(".meter-button").click()
    page.get_by_role("button", name="Show all that is sent").click()
    page.get_by_role("button", name="#9", exact=True).click()
    expect(page.locator("[data-seq='9']")).to_be_focused()
    expect(page.locator("[data-seq='9']")).to_be_in_viewport()
    expect(page.locator("[data-seq='10'][data-compacted]")).to_be_attached()
    page.locator("[data-seq='38']").scroll_into_view_if_needed()
    wait_until(page, lambda: read_message_range(page)[1] > 39)
    page.locator("[data-seq='90']").scroll_into_view_if_needed()
    wait_until(page, lambda: read_message_range(page)[1] > 100)
    expect(page.locator(".card + [data-seq='101']")).to_be_attached()


@pytest.mark.slow
def test_a_hit_of_long_ago_is_shown_without_leaving_the_page(page: Page, session: Session) -> None:
    fill_chat(session, 150)
    store_exchange(session, "The word is kumquat")
    fill_chat(session, 300)
    page.goto(f"/c/{session.pk}/")
    page.get_by_label("Your message").fill("a draft")
    page.evaluate("window.same = true")
    page.keyboard.press("Control+k")
    page.keyboard.type("kumquat")
    page.get_by_role("option", name="The word is kumquat").click()
    expect(page.locator("[data-seq='151'][data-found]")).to_be_in_viewport()
    assert page.evaluate("window.same && [...CSS.highlights.get('found')].map(String)") == [
        "kumquat"
    ]
    expect(page.get_by_label("Your message")).to_have_value("a draft")


@pytest.mark.slow
def test_a_version_chosen_long_ago_is_followed_by_what_followed_it(
    page: Page, session: Session
) -> None:
    fill_chat(session, 400)
    page.goto(f"/c/{session.pk}/?at=100")
    expect(page.locator("[data-seq='100']")).to_be_in_viewport()
    turn = control.start_turn(
        session, content="Another way", replaces=Message.objects.get(session=session, seq=101)
    )
    control.wait_for_turn(turn.pk, 20)
    expect(page.locator("[data-seq='101']")).to_have_count(0)
    expect(page.locator("[data-seq='401'] .words")).to_have_text("Another way")
    expect(page.locator("[data-seq='402']")).to_be_attached()
    read_message_range(page)
