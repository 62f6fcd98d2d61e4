"""The question before an MCP tool is called, and the choice of tools in the settings."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from chatcore.models import McpServer, Session
from tests.conftest import Live
from tests.support.mcp_server import ToolServer, run_tool_server
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

READ_DEFINITION = {
    "name": "read",
    "description": "Read a file.",
    "parameters": {"type": "object", "properties": {"path": {"type": "string"}}},
}
pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def tool_server(session: Session, monkeypatch: pytest.MonkeyPatch) -> Iterator[ToolServer]:
    with run_tool_server() as server:
        monkeypatch.setitem(settings.CHATCORE, "FETCH_ALLOW_HOSTS", [server.host])
        McpServer.objects.create(
            owner=session.owner, name="files", url=server.url, tools=[READ_DEFINITION]
        )
        yield server


def test_a_person_chooses_a_tool_is_asked_and_allows_it(
    page: Page, live: Live, session: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    page.goto(f"{live.url}/c/{session.pk}/")
    page.get_by_role("button", name="Settings of this chat").click()
    page.locator("[name=tools][value=mcp__files__read]").check()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("chat-settings")).to_be_hidden()

    scripted.script(
        Reply(tool_calls=(make_tool_call("mcp__files__read", {"path": "notes/trip.md"}),)),
        Reply(text="It says hello."),
    )
    page.locator("textarea").first.fill("Read my notes.")
    page.keyboard.press("Enter")
    question = page.get_by_role("group", name="May the model use “read” of the server “files”?")
    expect(question).to_contain_text("notes/trip.md")
    expect(page.locator(".waiting")).to_be_hidden()
    assert tool_server.calls == []

    page.reload()  # it still waits, and nothing but the rows knows
    state = page.locator(".call .call-asked")
    expect(state).to_have_text("waiting for your word")
    expect(state).to_be_visible()
    expect(page.locator(".call .call-running")).to_be_hidden()
    question.get_by_role("button", name="Allow once").click()
    expect(page.locator(".answer").last).to_contain_text("It says hello.")
    expect(question).to_have_count(0)
    expect(state).to_be_hidden()
    assert tool_server.calls == [("read", "notes/trip.md")]


@pytest.mark.slow
def test_never_takes_the_question_away_for_good(
    page: Page, live: Live, session: Session, scripted: ScriptedModel, tool_server: ToolServer
) -> None:
    Session.objects.update(tools=["mcp__files__read"])
    call = make_tool_call("mcp__files__read", {"path": "notes/trip.md"})
    scripted.script(Reply(tool_calls=(call,)), Reply(text="Then not."))
    scripted.script(Reply(tool_calls=(call,)), Reply(text="Not now either."))
    page.goto(f"{live.url}/c/{session.pk}/")
    for text in ("Then not.", "Not now either."):
        page.locator("textarea").first.fill("Read my notes.")
        page.keyboard.press("Enter")
        if text == "Then not.":
            page.get_by_role("button", name="Never").click()
        expect(page.locator(".answer").last).to_contain_text(text)
    expect(page.locator(".call").last).to_have_attribute("data-error", "")
    assert tool_server.calls == []
