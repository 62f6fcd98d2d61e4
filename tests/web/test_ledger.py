"""The ledger in the panel that shows what the model sees: read, add, edit, pin, drop, go to."""

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from chatcore.models import Session
from compaction.memory.models import LedgerLine, StandingRule
from tests.support.browsing import store_exchange
from tests.support.events import append_events
from tests.support.page_compactions import fill_long, run_in_background

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

RULE = "Never book a flight on a Sunday from now on."


@pytest.fixture
def remembered(session: Session) -> LedgerLine:
    """The line of a rule, in a session under the policy chatcore."""
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    store_exchange(session, f"{RULE} What of Lisbon?", "A fine town.")
    fill_long(session, exchanges=2)
    return LedgerLine.objects.create(
        session=session, kind="rule", text=RULE, original_text=RULE, seq=1, role="user", key="x"
    )


def open_ledger(page: Page, session: Session) -> Locator:
    page.goto(f"/c/{session.pk}/")
    page.locator(".meter-button").hover()
    page.get_by_role("button", name="Show all that is sent").click()
    ledger = page.locator(".ledger")
    expect(ledger).to_be_visible()
    ledger.locator("summary").click()
    return ledger


def read_line(line: LedgerLine) -> tuple[str, str, bool]:
    rows: list[tuple[str, str, bool]] = []
    run_in_background(
        lambda: rows.append(
            LedgerLine.objects.values_list("text", "status", "pinned").get(pk=line.pk)
        )
    ).join()
    return rows[0]


def test_a_line_is_shown_pinned_edited_dropped_and_brought_back(
    page: Page, session: Session, remembered: LedgerLine
) -> None:
    ledger = open_ledger(page, session)
    item = ledger.locator(".ledger-line")
    expect(item).to_have_text(re.compile(r"Rule.*Never book a flight", re.DOTALL))
    item.get_by_role("button", name="Pin the line").click()
    expect(item.get_by_role("button", name="Pin the line")).to_have_attribute(
        "aria-pressed", "true"
    )
    item.get_by_role("button", name="Edit the line").click()
    item.get_by_label("The line", exact=True).fill("Never fly on a Sunday.")
    item.get_by_role("button", name="Save").click()
    expect(item.locator(".ledger-text")).to_have_text("Never fly on a Sunday.")
    item.get_by_role("button", name="Drop the line").click()
    expect(item).to_have_attribute("data-status", "dropped")
    assert read_line(remembered) == ("Never fly on a Sunday.", "dropped", True)
    item.get_by_role("button", name="Bring the line back").click()
    expect(item).to_have_attribute("data-status", "current")
    expect(page.locator(".sent pre").first).to_contain_text("Never fly on a Sunday.")


@pytest.mark.slow
def test_an_open_editor_outlives_a_change_that_was_made_elsewhere(
    page: Page, session: Session, remembered: LedgerLine
) -> None:
    item = open_ledger(page, session).locator(".ledger-line").first
    item.get_by_role("button", name="Edit the line").click()
    field = item.get_by_label("The line", exact=True)
    field.fill("Half a sente")
    run_in_background(add_line_elsewhere, session).join()
    expect(page.locator(".ledger-line")).to_have_count(2)
    expect(field).to_have_value("Half a sente")
    expect(field).to_be_focused()
    item.get_by_role("button", name="Save").click()
    expect(item.locator(".ledger-text")).to_have_text("Half a sente")


def add_line_elsewhere(session: Session) -> None:
    LedgerLine.objects.create(
        session=session, kind="value", text="180 euros", original_text="180 euros", key="y"
    )
    append_events(session.pk, ("session.updated", {"fields": ["ledger"]}))


@pytest.mark.slow
def test_a_line_holds_always_until_the_button_is_pressed_again(
    page: Page, session: Session, remembered: LedgerLine
) -> None:
    run_in_background(
        lambda: StandingRule.objects.create(owner=session.owner, kind="rule", text="From elsewhere")
    ).join()
    ledger = open_ledger(page, session)
    items = ledger.locator(".ledger-line")
    expect(items).to_have_count(2)
    expect(items.first.locator(".ledger-text")).to_have_text("From elsewhere")
    always = items.last.get_by_role("button", name="Always")
    always.click()
    expect(always).to_have_attribute("aria-pressed", "true")
    always.click()
    expect(always).to_have_attribute("aria-pressed", "false")
    items.first.get_by_role("button", name="Always").click()
    expect(items).to_have_count(1)


@pytest.mark.slow
def test_a_line_is_added_by_hand(page: Page, session: Session, remembered: LedgerLine) -> None:
    ledger = open_ledger(page, session)
    ledger.get_by_label("Kind of the line").select_option("preference")
    ledger.get_by_label("What should be remembered").fill("Answer in <b>German</b>.")
    ledger.get_by_role("button", name="Remember", exact=True).click()
    expect(ledger.locator(".ledger-line")).to_have_count(2)
    expect(ledger.locator(".ledger-line").last).to_contain_text("Answer in <b>German</b>.")
    expect(ledger.locator(".ledger-count")).to_have_text("2")


@pytest.mark.slow
def test_its_link_goes_to_the_message(page: Page, session: Session, remembered: LedgerLine) -> None:
    ledger = open_ledger(page, session)
    ledger.get_by_role("button", name="#1").click()
    expect(page.locator("#context-panel")).to_be_hidden()
    expect(page.locator("article:focus")).to_contain_text(RULE)


@pytest.mark.slow
def test_a_policy_without_a_ledger_shows_none(page: Page, session: Session) -> None:
    fill_long(session, exchanges=1)
    page.goto(f"/c/{session.pk}/")
    page.locator(".meter-button").hover()
    page.get_by_role("button", name="Show all that is sent").click()
    expect(page.locator("#context-panel .panel-facts")).to_contain_text("version")
    expect(page.locator(".ledger")).to_be_hidden()


@pytest.mark.browser
def test_a_line_that_is_forgotten_says_so(
    remembered: LedgerLine, session: Session, page: Page
) -> None:
    text = "Please forget what I said about a flight on a Sunday."
    LedgerLine.objects.create(
        session=session, kind="decision", text=text, original_text=text, seq=3, role="user", key="y"
    )
    ledger = open_ledger(page, session)
    line = ledger.locator(".ledger-line", has_text=RULE)
    expect(line).to_contain_text("(forgotten at your request)")
