"""A user's own MCP servers on the settings page, asked over their real protocol."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Page, ViewportSize, expect

from chatcore.models import McpServer, Session
from chatcore.models.mcp_server import MAX_SERVERS
from chatcore.tools.mcp.refresh import refresh_server
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.rendered_pages import get_html, others, signed_in
from tests.web.test_axe import find_objections

__all__ = ["others", "running", "signed_in", "tool_server"]

ADDRESS = "/settings/tool-servers/"
SECRET = "a-very-secret-word"
FIELDS = {"name": "files", "url": "http://127.0.0.1/mcp", "require_approval": "always"}
HOSTILE = "<img src=x onerror=alert(1)>"
pytestmark = pytest.mark.django_db(transaction=True)


def post(client: Client, path: str, **fields: str) -> str:
    response = client.post(f"{ADDRESS}{path}", fields)
    assert response.status_code == 200
    return response.content.decode()


def test_a_server_is_added_tested_changed_and_deleted(
    signed_in: Client, user: User, tool_server: ToolServer
) -> None:
    fields = FIELDS | {"url": tool_server.url, "is_active": "on"}
    headers = f"X-Key: {SECRET}\n\nAuthorization: Bearer a:b"
    html = post(signed_in, "", **fields, new_headers=headers)
    server = McpServer.objects.get(owner=user)
    assert (server.name, server.is_active, server.error) == ("files", True, "")
    assert server.reveal_headers() == {"X-Key": SECRET, "Authorization": "Bearer a:b"}
    assert "Read a file." in html
    assert "sends Authorization, X-Key" in html
    assert {each["x-key"] for each in tool_server.headers} == {SECRET}

    tool_server.headers.clear()
    assert "It answered, and offers 4 tools." in post(signed_in, f"{server.pk}/test/")
    assert tool_server.headers

    tool_server.headers.clear()
    path = f"{server.pk}/edit/"
    form = get_html(signed_in, f"{ADDRESS}{path}")
    assert "Stored: Authorization, X-Key." in form
    changes = fields | {"name": "notes", "require_approval": "never"}
    del changes["is_active"]
    row = post(signed_in, path, **changes)
    assert "never asks" in row
    assert "switched off" in row
    server.refresh_from_db()
    assert (server.name, server.header_names) == ("notes", ["Authorization", "X-Key"])
    assert not tool_server.headers, "what did not change is not asked again"
    pages = (html, form, row, get_html(signed_in, "/settings/"))
    assert not any(SECRET in page for page in pages)

    moved = post(signed_in, path, **changes | {"url": f"{tool_server.url}/"})
    assert "X-Key" not in moved, "headers stay with the address they were typed for"
    assert not any("x-key" in each for each in tool_server.headers)
    post(signed_in, path, **changes, new_headers="X-Key: new")
    assert "X-Key" not in post(signed_in, path, **changes, clear_headers="on")
    assert "notes" in get_html(signed_in, f"{ADDRESS}{server.pk}/")
    assert post(signed_in, f"{server.pk}/delete/") == ""
    assert not McpServer.objects.exists()


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"name": "My Server"}, "name", "This name has other characters"),
        ({"name": ""}, "name", "required"),
        ({"name": "taken"}, "name", "Another server has this name."),
        ({"url": "ftp://example.com/"}, "url", "not an http or https address"),
        ({"url": "stdio:clock"}, "url", "not an http or https address"),
        ({"url": "http://user:word@example.com/"}, "url", "without credentials"),
        ({"new_headers": f"X-A: b\n{SECRET}"}, "new_headers", "Line 2 is not"),
        ({"new_headers": f"Host: {SECRET}"}, "new_headers", "Line 1 is not"),
        ({"require_approval": "sometimes"}, "require_approval", "Select a valid choice"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    signed_in: Client, user: User, change: dict[str, str], field: str, words: str
) -> None:
    McpServer.objects.create(owner=user, name="taken", url="http://127.0.0.1/mcp")
    edited = McpServer.objects.create(owner=user, name="edited", url="http://127.0.0.1/mcp")
    for path, mark in (("", "new"), (f"{edited.pk}/edit/", edited.pk)):
        html = post(signed_in, path, **FIELDS | {"new_headers": f"X-A: {SECRET}"} | change)
        error = re.search(rf'id="server-{mark}-{field}_error"[^>]*>([^<]+)', html)
        assert error
        assert words in error[1]
        assert SECRET not in html
        assert "hx-preserve" in html, "the browser keeps what was typed"
    names = McpServer.objects.values_list("name", flat=True)
    assert sorted(names) == ["edited", "taken"]


def test_a_server_that_cannot_be_asked_says_why_and_keeps_its_tools(
    signed_in: Client, tool_server: ToolServer
) -> None:
    row = post(signed_in, "", **FIELDS)
    assert "not on the public internet" in row
    server = McpServer.objects.get()
    post(signed_in, f"{server.pk}/edit/", **FIELDS | {"url": tool_server.url})
    McpServer.objects.update(url=f"http://{tool_server.host}/elsewhere")
    assert "answered with the status 404" in post(signed_in, f"{server.pk}/test/")
    page = get_html(signed_in, "/settings/")
    assert "answered with the status 404" in page
    assert "Read a file." in page


def test_nobody_reaches_anothers_server_or_a_shared_one(
    signed_in: Client, others: Session, user: User
) -> None:
    theirs = McpServer.objects.create(owner=others.owner, name="private", url="https://a.test/")
    shared = McpServer.objects.create(name="shared", url="https://b.test/")
    for server in (theirs, shared):
        for act in ("", "edit/"):
            assert signed_in.get(f"{ADDRESS}{server.pk}/{act}").status_code == 404
        for act in ("edit/", "test/", "delete/"):
            response = signed_in.post(f"{ADDRESS}{server.pk}/{act}", FIELDS)
            assert response.status_code == 404
    assert McpServer.objects.count() == 2
    page = get_html(signed_in, "/settings/")
    assert "a.test" not in page
    assert "b.test" not in page
    post(signed_in, "", **FIELDS | {"name": "private"})
    assert user.mcp_servers.get().name == "private"
    assert "/login/" in Client().post(ADDRESS, FIELDS).headers["Location"]


def test_there_is_a_most_of_servers_and_of_questions_a_minute(
    signed_in: Client, user: User, settings: Any
) -> None:
    names = [f"server-{number}" for number in range(MAX_SERVERS)]
    url = "http://127.0.0.1/mcp"
    McpServer.objects.bulk_create(McpServer(owner=user, name=name, url=url) for name in names)
    assert f"There are already {MAX_SERVERS} servers" in post(signed_in, "", **FIELDS)
    server = McpServer.objects.filter(owner=user)[0]
    settings.CHATCORE = settings.CHATCORE | {"TURNS_PER_MINUTE": 1}
    post(signed_in, f"{server.pk}/test/")
    refused = signed_in.post(f"{ADDRESS}{server.pk}/test/")
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) > 0
    assert "too much for one minute" in refused.content.decode()
    assert refused.headers["Content-Type"].startswith("text/plain")


def test_words_of_a_hostile_server_are_only_words(signed_in: Client, user: User) -> None:
    tool = {"name": HOSTILE, "description": f"{HOSTILE}</details>", "parameters": {}}
    server = McpServer.objects.create(
        owner=user,
        name="files",
        url=f'https://a.test/"{HOSTILE}',
        header_names=[HOSTILE],
        tools=[tool],
        error=HOSTILE,
    )
    pages = [
        get_html(signed_in, path)
        for path in ("/settings/", f"{ADDRESS}{server.pk}/", f"{ADDRESS}{server.pk}/edit/")
    ]
    assert all("&lt;img src=x" in page for page in pages)
    assert not any("<img src=x" in page for page in pages)


def test_a_server_that_is_deleted_while_it_is_asked_stays_deleted(user: User) -> None:
    server = McpServer.objects.create(owner=user, name="files", url="http://127.0.0.1/mcp")
    McpServer.objects.all().delete()
    refresh_server(server)
    assert not McpServer.objects.exists()


def test_the_form_of_operators_takes_headers_the_same_way(
    signed_in: Client, user: User, tool_server: ToolServer
) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    path = "/admin/chatcore/mcpserver/add/"
    fields = FIELDS | {"url": tool_server.url, "is_active": "on"}
    refused = signed_in.post(path, fields | {"new_headers": "X-Key"}).content.decode()
    assert "Line 1 is not the name of a header" in refused
    refused = signed_in.post(path, fields | {"url": "stdio:clock"}).content.decode()
    assert "names no such command" in refused
    signed_in.post(path, fields | {"new_headers": f"X-Key: {SECRET}"})
    server = McpServer.objects.get()
    assert server.reveal_headers() == {"X-Key": SECRET}
    assert len(server.tools) == 4
    changes = fields | {"url": f"{tool_server.url}/"}
    signed_in.post(f"/admin/chatcore/mcpserver/{server.pk}/change/", changes)
    server.refresh_from_db()
    assert (server.url, server.header_names) == (changes["url"], [])


def check_with_axe(page: Page) -> None:
    """Find nothing wrong in the light on a desk, nor in the dark on a phone."""
    looks: tuple[tuple[Any, ViewportSize], ...] = (
        ("dark", {"width": 360, "height": 740}),
        ("light", {"width": 1280, "height": 860}),
    )
    for scheme, size in looks:
        page.emulate_media(color_scheme=scheme)
        page.set_viewport_size(size)
        assert find_objections(page) == []
        assert page.evaluate("document.scrollingElement.scrollWidth <= innerWidth")


@pytest.mark.slow
@pytest.mark.browser
def test_a_person_adds_corrects_tests_and_deletes_a_server(
    page: Page, user: User, tool_server: ToolServer
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.goto("/settings/")
    section = page.locator("#tool-servers")
    section.get_by_text("Add a server").click()
    section.get_by_label("Name").fill("My files")
    section.get_by_label("Address").fill(tool_server.url)
    section.get_by_label("Headers").fill(f"X-Key: {SECRET}")
    section.get_by_role("button", name="Add").click()
    expect(section.get_by_role("alert")).to_contain_text("This name has other characters")
    expect(section.get_by_label("Name")).to_be_focused()
    check_with_axe(page)
    section.get_by_label("Name").fill("files")
    page.keyboard.press("Enter")

    row = section.locator(".tool-server")
    expect(row.get_by_text("Read a file.")).to_be_visible()
    expect(row).to_contain_text("sends X-Key")
    expect(row.get_by_role("button", name="Test files")).to_be_focused()
    assert {each["x-key"] for each in tool_server.headers} == {SECRET}
    assert SECRET not in page.content()

    page.reload()
    page.keyboard.press("Home")
    row.get_by_role("button", name="Test files").click()
    expect(row.get_by_role("status")).to_have_text("It answered, and offers 4 tools.")
    expect(row.get_by_text("Read a file.")).to_be_visible()
    check_with_axe(page)

    row.get_by_role("button", name="Edit files").click()
    expect(row.get_by_role("textbox", name="Headers")).to_have_value("")
    expect(row.get_by_text("Stored: X-Key.")).to_be_visible()
    check_with_axe(page)
    row.get_by_role("button", name="Cancel").click()
    expect(row.get_by_role("button", name="Edit files")).to_be_focused()
    page.keyboard.press("Enter")
    row.get_by_label("Address").fill(f"http://{tool_server.host}/elsewhere")
    row.get_by_label("Before a call").select_option(label="Never ask")
    row.get_by_label("Switched on").uncheck()
    row.get_by_role("button", name="Save").click()
    expect(row.get_by_role("status")).to_have_text("The server files answered with the status 404.")
    expect(row).to_contain_text("never asks · switched off")
    expect(row).not_to_contain_text("X-Key")
    check_with_axe(page)

    page.once("dialog", lambda dialog: dialog.dismiss())
    row.get_by_role("button", name="Delete files").click()
    expect(row).to_have_count(1)
    page.once("dialog", lambda dialog: dialog.accept())
    row.get_by_role("button", name="Delete files").click()
    expect(row).to_have_count(0)
    assert not McpServer.objects.exists()
