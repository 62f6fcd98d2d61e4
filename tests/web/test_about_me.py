"""What it knows about me: the rules of all chats and the lines of each, on one page."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Page, expect

from chatcore.contrib.holds.models import Hold
from chatcore.models import Session
from compaction.memory.models import LedgerLine, StandingRule
from tests.support.compaction_sessions import say

WORDS = "Always answer in <b>metric</b> units."
SAID = "The alarm code is 4711."
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def remembering(session: Session) -> Session:
    """A chat in which something was said that is remembered."""
    Session.objects.filter(pk=session.pk).update(policy="chatcore", title="The <i>house</i>")
    session.refresh_from_db()
    say(session, SAID)
    assert LedgerLine.objects.filter(session=session, text=SAID).exists()
    return session


@pytest.mark.browser
def test_rules_and_lines_are_read_changed_and_forgotten(remembering: Session, page: Page) -> None:
    page.goto("/settings/")
    section = page.locator("#about-me")
    section.get_by_text("New rule").click()
    form = section.locator("details", has_text="New rule")
    form.get_by_label("Text").fill(WORDS)
    form.get_by_role("button", name="Save").click()
    rule = section.locator("details", has_text=WORDS)
    rule.locator("summary").click()
    rule.get_by_label("Text").fill("Answer in feet.")
    rule.get_by_role("button", name="Save").click()
    expect(section.locator("summary", has_text="Answer in feet.")).to_be_visible()
    assert StandingRule.objects.get().text == "Answer in feet."
    section.get_by_text("Remembered in single chats").click()
    chats = page.locator("#remembered-chats")
    expect(chats.get_by_role("link", name="The <i>house</i>")).to_be_visible()
    line = chats.locator("details", has_text=SAID)
    line.locator("summary").click()
    page.on("dialog", lambda dialog: dialog.accept())
    line.get_by_role("button", name="Forget").click()
    expect(chats).to_contain_text("No chat remembers anything yet.")
    rule = section.locator("details", has_text="Answer in feet.")
    rule.locator("summary").click()
    rule.get_by_role("button", name="Forget").click()
    expect(section.locator("summary", has_text="Answer in feet.")).to_have_count(0)
    assert not StandingRule.objects.exists()


@pytest.mark.browser
def test_a_line_leads_to_its_message_and_a_chat_does_without(
    remembering: Session, page: Page
) -> None:
    page.goto("/settings/")
    page.locator("#about-me").get_by_text("Remembered in single chats").click()
    line = page.locator("#remembered-chats details", has_text=SAID)
    line.locator("summary").click()
    line.get_by_role("link", name="Go to the message that says it").click()
    expect(page.locator(".message", has_text=SAID).first).to_be_visible()
    address = f"/c/{remembering.pk}/"
    page.goto(address)
    page.locator("[data-chat-settings]").first.click()
    choice = page.get_by_label("Do without what it knows about me")
    with page.expect_response(f"**{address}rules/") as answer:
        choice.check()
    assert answer.value.status == 204


def test_nobody_sees_or_changes_what_is_known_of_another(
    remembering: Session, client: Client
) -> None:
    rule = StandingRule.objects.create(owner=remembering.owner, kind="rule", text=WORDS)
    line = LedgerLine.objects.get(session=remembering, text=SAID)
    client.force_login(User.objects.create_user("mallory"))
    shown = client.get("/settings/remembered/").content + client.get("/settings/").content
    assert b"4711" not in shown
    assert b"metric" not in shown
    fields = {"kind": "rule", "text": "Mine."}
    of_line = f"/settings/remembered/{remembering.pk}/{line.pk}/"
    for address in (
        f"/settings/rules/{rule.pk}/",
        f"/settings/rules/{rule.pk}/forget/",
        of_line,
        f"{of_line}forget/",
        f"/c/{remembering.pk}/rules/",
    ):
        assert client.post(address, fields).status_code == 404, address
    assert (StandingRule.objects.get().text, LedgerLine.objects.get().text) == (WORDS, SAID)


def test_what_cannot_be_stored_is_told_and_the_text_stays(
    remembering: Session, client: Client
) -> None:
    owner = remembering.owner
    client.force_login(owner)
    rule = StandingRule.objects.create(owner=owner, kind="rule", text=WORDS)
    page = client.post("/settings/rules/", {"kind": "rule", "text": "x" * 401}).content.decode()
    assert 'role="alert"' in page
    assert "x" * 401 in page
    Hold.objects.create(user=owner, reason="A case.", created_at=timezone.now())
    for address in (f"/settings/rules/{rule.pk}/", f"/settings/rules/{rule.pk}/forget/"):
        page = client.post(address, {"kind": "rule", "text": "Other."}).content.decode()
        assert "kept for legal reasons" in page
    assert StandingRule.objects.get().text == WORDS


def test_a_line_that_is_forgotten_says_so(remembering: Session, client: Client) -> None:
    client.force_login(remembering.owner)
    say(remembering, "Please forget the alarm code.")
    text = client.get("/settings/remembered/").content.decode()
    row = text.split(SAID, 1)[1].split("</summary>")[0]
    assert "forgotten at your request" in row
