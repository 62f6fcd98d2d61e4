"""The pages as the server renders them: who may see what, and that nothing in them can run."""

import json
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from chatcore.models import Session, SessionEvent, Turn
from chatcore.web import sign_in
from tests.support.rendered_pages import get_html, others, say, signed_in

__all__ = ["others", "signed_in"]

pytestmark = pytest.mark.django_db


def test_every_page_asks_a_stranger_to_sign_in(client: Client, session: Session) -> None:
    for path in (
        "/",
        "/new/",
        f"/c/{session.pk}/",
        "/chats/",
        "/settings/",
        f"/c/{session.pk}/messages/",
    ):
        assert client.get(path)["Location"].startswith("/login/?next="), path


def test_a_password_signs_in_and_a_wrong_one_is_told_kindly(client: Client, user: User) -> None:
    response = client.post("/login/", {"username": "alice", "password": "wrong"})
    assert "do not match" in response.content.decode()
    assert (
        client.post("/login/", {"username": "alice", "password": "alice's password"})["Location"]
        == "/"
    )


def test_a_printed_link_signs_in_once(client: Client, user: User) -> None:
    token = sign_in.issue_token(user)
    assert client.post(f"/login/once/{token}/")["Location"] == "/"
    assert client.get("/settings/").status_code == 200
    for again in (Client().post(f"/login/once/{token}/"), Client().get(f"/login/once/{token}/")):
        assert again.status_code == 410
        assert "was already used" in again.content.decode()


def test_a_printed_link_that_is_opened_by_hand_asks_nothing(client: Client, user: User) -> None:
    headers = {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}
    address = f"/login/once/{sign_in.issue_token(user)}/"
    assert client.get(address, headers=headers)["Location"] == "/"
    assert client.get("/settings/").status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Purpose": "prefetch"},
        {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "no-cors"},
    ],
)
def test_who_only_looks_at_a_printed_link_does_not_use_it_up(
    client: Client, user: User, headers: dict[str, str]
) -> None:
    address = f"/login/once/{sign_in.issue_token(user)}/"
    for _ in range(2):
        page = client.get(address, headers=headers)
        assert (page.status_code, page.headers["Referrer-Policy"]) == (200, "same-origin")
        assert "as alice" in page.content.decode()
        assert client.get("/settings/").status_code == 302
    strangers_page = Client(enforce_csrf_checks=True)
    assert strangers_page.post(address).status_code == 403
    assert client.post(address)["Location"] == "/"


def test_a_forged_link_signs_nobody_in(client: Client) -> None:
    assert client.get("/login/once/forged/").status_code == 410
    assert client.get("/settings/").status_code == 302


def test_signing_out_takes_a_deliberate_act(signed_in: Client) -> None:
    assert signed_in.get("/logout/").status_code == 405
    signed_in.post("/logout/")
    assert signed_in.get("/settings/").status_code == 302


def test_home_is_the_newest_chat_or_a_new_one(signed_in: Client, user: User) -> None:
    assert signed_in.get("/")["Location"] == "/new/"
    Session.objects.create(owner=user, updated_at=timezone.now() - timedelta(days=1))
    newest = Session.objects.create(owner=user)
    assert signed_in.get("/")["Location"] == f"/c/{newest.pk}/"


def test_what_is_not_yours_is_not_there(
    signed_in: Client, session: Session, others: Session
) -> None:
    message = others.messages.get()
    turn = Turn.objects.create(
        session=others, lease_until=timezone.now(), error={"type": "x", "detail": "y"}
    )
    for path in ("", "before/9/", "rename/", f"messages/{message.pk}/", f"turns/{turn.pk}/error/"):
        assert signed_in.get(f"/c/{others.pk}/{path}").status_code == 404, path
        assert signed_in.get(f"/c/{uuid4()}/{path}").status_code == 404, path
    assert signed_in.post(f"/c/{others.pk}/rename/", {"title": "Mine"}).status_code == 404
    assert signed_in.post(f"/c/{others.pk}/pin/", {"on": "true"}).status_code == 404
    assert signed_in.post(f"/c/{others.pk}/archive/", {"on": "true"}).status_code == 404
    assert signed_in.get(f"/c/{session.pk}/messages/{message.pk}/").status_code == 404
    assert "Bob's plans" not in get_html(signed_in, "/chats/?q=plans")


def test_a_page_that_is_not_there_says_so_and_leads_back(
    signed_in: Client, others: Session
) -> None:
    missing = [signed_in.get(path) for path in (f"/c/{uuid4()}/", f"/c/{others.pk}/", "/nowhere/")]
    assert [response.status_code for response in missing] == [404] * 3
    assert len({response.content for response in missing}) == 1
    page = missing[0].content.decode()
    assert "There is no such page" in page
    assert 'href="/"' in page


def test_chats_stand_under_their_days(signed_in: Client, user: User) -> None:
    for title, days in (("Now", 0), ("Then", 1), ("Lately", 5), ("Once", 40)):
        Session.objects.create(
            owner=user, title=title, updated_at=timezone.now() - timedelta(days=days)
        )
    month = date_format(timezone.now() - timedelta(days=40), "YEAR_MONTH_FORMAT")
    rows = re.findall(r'chats-label">(.*?)<| title="(.*?)"[\s>]', get_html(signed_in, "/chats/"))
    assert [label or title for label, title in rows] == [
        "Today",
        "Now",
        "Yesterday",
        "Then",
        "Last 7 days",
        "Lately",
        month,
        "Once",
    ]


def test_a_long_list_of_chats_continues_without_saying_its_label_twice(
    signed_in: Client, user: User
) -> None:
    for number in range(45):
        Session.objects.create(
            owner=user,
            title=f"Chat {number}",
            updated_at=datetime(2020, 5, 20, 12, number, tzinfo=UTC),
        )
    Session.objects.create(
        owner=user, title="Kept", pinned=True, updated_at=datetime(2020, 1, 1, tzinfo=UTC)
    )
    first = get_html(signed_in, "/chats/")
    following = re.search(r'hx-get="(/chats/\?after=[^"]+)"', first)
    assert following
    second = get_html(signed_in, following[1].replace("&amp;", "&"))
    assert (first.count("chat-row"), second.count("chat-row")) == (26, 20)
    assert "May 2020" in first
    assert "May 2020" not in second
    assert first.index("Kept") < first.index("May 2020")
    assert "Kept" not in second


@pytest.mark.parametrize(
    "time",
    ["0001-01-01T00:00:00%2B23:59", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00Z", "x", ""],
)
def test_a_cursor_beyond_the_calendar_is_no_error(signed_in: Client, time: str) -> None:
    cursor = f"{time}_00000000-0000-4000-8000-000000000000"
    assert signed_in.get(f"/chats/?after={cursor}").status_code == 200


def test_search_finds_titles(signed_in: Client, user: User) -> None:
    Session.objects.create(owner=user, title="Bread at home")
    Session.objects.create(owner=user, title="Trip to Lisbon")
    html = get_html(signed_in, "/chats/?q=bread")
    assert "Bread at home" in html
    assert "Lisbon" not in html
    assert "No chat has this" in get_html(signed_in, "/chats/?q=nothing%20like%20it")


def test_a_chat_is_renamed_on_one_line_and_open_pages_hear_of_it(
    signed_in: Client, session: Session
) -> None:
    answer = signed_in.post(f"/c/{session.pk}/rename/", {"title": "  A better\n name " + "x" * 300})
    session.refresh_from_db()
    assert session.title == ("A better name " + "x" * 300)[:200]
    assert session.title in answer.content.decode()
    assert SessionEvent.objects.get(session=session).data == {"fields": ["title"]}


def test_a_chat_is_pinned_and_put_away_where_it_stands_in_time(
    signed_in: Client, session: Session
) -> None:
    before = session.updated_at
    for field, address in (("pinned", "pin"), ("archived", "archive")):
        answer = signed_in.post(f"/c/{session.pk}/{address}/", {"on": "true"})
        change = {"chat": str(session.pk), "flag": field, "isOn": True}
        assert json.loads(answer["HX-Trigger"]) == {"chat-flagged": change}
        session.refresh_from_db()
        assert getattr(session, field) is True
    assert session.updated_at == before
    assert str(session.pk) not in get_html(signed_in, "/chats/")
    assert str(session.pk) in get_html(signed_in, "/chats/?archived")
    signed_in.post(f"/c/{session.pk}/archive/", {"on": "false"})
    assert str(session.pk) in get_html(signed_in, "/chats/")


def test_the_palette_shows_what_is_yours_and_marks_the_words(
    signed_in: Client, session: Session, others: Session
) -> None:
    say(session, "user", "A <b>secret</b> of mine")
    html = get_html(signed_in, "/search/?q=SECRET")
    assert "A &lt;b&gt;<mark>secret</mark>&lt;/b&gt; of mine" in html
    assert str(others.pk) not in html
    assert "No chat and no message has any of these words." in get_html(
        signed_in, "/search/?q=nothing+like+it"
    )
    assert f"/c/{session.pk}/" in get_html(signed_in, "/search/")
    assert signed_in.get(f"/search/?q=secret&chat={others.pk}").status_code == 404


def test_what_no_database_stores_is_left_out(signed_in: Client, session: Session) -> None:
    signed_in.post(f"/c/{session.pk}/rename/", {"title": "Ti\0tle"})
    session.refresh_from_db()
    assert session.title == "Title"
    assert "Title" in signed_in.get("/chats/", {"q": "tit\0le"}).content.decode()


class Scripts(HTMLParser):
    """A parser that collects what the content security policy would block."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        if tag == "script" and not (names.get("src") or "").startswith("/static/"):
            self.refused.append("inline script")
        self.refused += [name for name in names if name.startswith(("on", "hx-on"))]


def test_no_page_holds_a_script_and_every_one_brings_the_policy(
    signed_in: Client, session: Session
) -> None:
    for path in ("/login/", "/new/", f"/c/{session.pk}/", "/settings/", "/chats/"):
        client = Client() if path == "/login/" else signed_in
        response = client.get(path)
        scripts = Scripts()
        scripts.feed(response.content.decode())
        assert scripts.refused == [], path
        assert "script-src 'self'" in response["Content-Security-Policy"]
