"""The pages as the server renders them: who may see what, and that nothing in them can run."""

import os
import re
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format
from knox.models import AuthToken

from chatcore.local_model.weights import WEIGHTS_BY_SIZE
from chatcore.models import Message, Session, SessionEvent, Turn
from chatcore.web import sign_in
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

TEMPLATES = Path(__file__).resolve().parents[2] / "templates/chatcore"

pytestmark = pytest.mark.django_db


@pytest.fixture
def signed_in(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


@pytest.fixture
def others(model: AiModel) -> Session:
    bob = User.objects.create_user("bob", password="bob's password")
    session = Session.objects.create(owner=bob, model=model, title="Bob's plans")
    say(session, "user", "A secret")
    return session


def say(session: Session, role: str, content: str, **fields: Any) -> Message:
    seq = session.messages.count() + 1
    return Message.objects.create(session=session, seq=seq, role=role, content=content, **fields)


def get_html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


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
    assert client.get(f"/login/once/{token}/")["Location"] == "/"
    assert client.get("/settings/").status_code == 200
    again = Client().get(f"/login/once/{token}/")
    assert again.status_code == 410
    assert "was already used" in again.content.decode()


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
    assert (first.count("chat-row"), second.count("chat-row")) == (41, 5)
    assert "May 2020" in first
    assert "May 2020" not in second
    assert first.index("Kept") < first.index("May 2020")
    assert "Kept" not in second


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
        assert answer["HX-Trigger"] == '{"refresh": {}}'
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
    assert "No chat and no message has all these words." in get_html(
        signed_in, "/search/?q=nothing+like+it"
    )
    assert f"/c/{session.pk}/" in get_html(signed_in, "/search/")
    assert signed_in.get(f"/search/?q=secret&chat={others.pk}").status_code == 404


def test_what_no_database_stores_is_left_out(signed_in: Client, session: Session) -> None:
    signed_in.post(f"/c/{session.pk}/rename/", {"title": "Ti\0tle"})
    session.refresh_from_db()
    assert session.title == "Title"
    assert "Title" in signed_in.get("/chats/", {"q": "tit\0le"}).content.decode()


def test_what_was_said_is_text_and_never_markup(signed_in: Client, session: Session) -> None:
    session.title = "<b>bold</b>"
    session.save()
    say(session, "user", "<script>alert(1)</script>")
    say(
        session,
        "assistant",
        "<img src=x onerror=alert(1)>",
        tool_calls=[{"id": "</pre>", "name": "<b>", "arguments": "<u>"}],
    )
    say(session, "tool", "<script>alert(2)</script>", tool_call_id="</pre>", tool_name="<b>")
    page = get_html(signed_in, f"/c/{session.pk}/")
    for markup in ("<script>alert", "<img src=x", "<b>", "<u>"):
        assert markup not in page, markup


def test_a_tool_result_stands_inside_its_call(signed_in: Client, session: Session) -> None:
    for _ in range(2):  # some models give the same id again in every answer
        say(
            session,
            "assistant",
            "",
            tool_calls=[{"id": "call_1", "name": "calculate", "arguments": '{"expression":"6*7"}'}],
        )
        say(session, "tool", "42", tool_call_id="call_1", tool_name="calculate")
    page = get_html(signed_in, f"/c/{session.pk}/").split("<template")[0]
    assert page.count("\n42</pre>") == 2
    assert page.count('<article class="message answer"') == 2
    assert page.count("data-done") == 2


def test_a_long_chat_shows_its_newest_messages_and_offers_the_others(
    signed_in: Client, session: Session
) -> None:
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role="user", content=f"word {seq};")
        for seq in range(1, 301)
    )
    for path, seen, before, after in (
        ("", range(241, 301), "241", None),
        ("?at=100", range(71, 131), "71", "130"),
        ("?at=nonsense", range(241, 301), "241", None),
        ("messages/?before=241", range(181, 241), "181", None),
        ("messages/?after=100", range(101, 161), None, "160"),
    ):
        page = get_html(signed_in, f"/c/{session.pk}/{path}")
        assert re.findall(r"word (\d+);", page) == [str(seq) for seq in seen], path
        assert re.findall(r'data-(before|after)="(\d+)"', page) == [
            (side, seq) for side, seq in (("before", before), ("after", after)) if seq
        ], path


def test_messages_before_the_boundary_are_dimmed_and_whole(
    signed_in: Client, session: Session
) -> None:
    for number in range(1, 5):
        say(session, "user", f"words {number}")
    Session.objects.filter(pk=session.pk).update(compact_boundary_seq=3)
    page = get_html(signed_in, f"/c/{session.pk}/")
    assert 'data-boundary="3"' in page
    assert re.findall(r'data-seq="(\d)"\s+data-turn=""\s+data-compacted', page) == ["1", "2"]
    assert "words 1" in page


def test_a_failed_turn_says_why_under_its_message(signed_in: Client, session: Session) -> None:
    error = {"type": "provider_auth", "detail": "The key was refused."}
    turn = Turn.objects.create(
        session=session, status="failed", lease_until=timezone.now(), error=error
    )
    say(session, "user", "Are you there?", turn=turn)
    page = get_html(signed_in, f"/c/{session.pk}/")
    assert page.index("Are you there?") < page.index("The key was refused.")
    assert "Your message is kept" in page
    assert "The key was refused." in get_html(signed_in, f"/c/{session.pk}/turns/{turn.pk}/error/")


def test_a_trimmed_turn_says_so_after_a_reload_too(signed_in: Client, session: Session) -> None:
    notice = "Conversation history has been automatically trimmed"
    turn = Turn.objects.create(
        session=session, status="completed", lease_until=timezone.now(), notices=[notice]
    )
    say(session, "user", "Go on.", turn=turn)
    assert f'<p class="line notice">{notice}</p>' in get_html(signed_in, f"/c/{session.pk}/")


def test_an_answer_being_written_is_followed_from_its_beginning(
    signed_in: Client, session: Session
) -> None:
    turn = Turn.objects.create(
        session=session, lease_until=timezone.now() + timedelta(minutes=1), first_event_seq=7
    )
    Session.objects.filter(pk=session.pk).update(last_event_seq=30)
    say(session, "user", "Tell me", turn=turn)
    say(session, "assistant", "", turn=turn, status="streaming")
    page = get_html(signed_in, f"/c/{session.pk}/")
    assert 'data-follow="6"' in page
    assert f'data-running="{turn.pk}"' in page
    assert 'data-status="streaming"' in page


def test_a_token_is_shown_once_and_can_be_deleted(signed_in: Client, user: User) -> None:
    html = signed_in.post("/settings/tokens/").content.decode()
    token = AuthToken.objects.get(user=user)
    secret = re.search(rf"<code>({token.token_key}\w+)</code>", html)
    assert secret
    assert secret[1] not in get_html(signed_in, "/settings/")
    assert token.token_key in get_html(signed_in, "/settings/")
    signed_in.post(f"/settings/tokens/{token.digest}/delete/")
    assert not AuthToken.objects.exists()


def test_nobody_deletes_anothers_token(signed_in: Client, others: Session) -> None:
    token, _ = AuthToken.objects.create(user=others.owner)
    assert signed_in.post(f"/settings/tokens/{token.digest}/delete/").status_code == 404


def test_only_staff_chooses_the_default_model(
    signed_in: Client, user: User, model: AiModel
) -> None:
    second = AiModel.objects.create(provider=model.provider, name="second")
    signed_in.post("/settings/default-model/", {"model": "scripted/second"})
    assert AiModel.objects.find_default() == model
    User.objects.filter(pk=user.pk).update(is_staff=True)
    signed_in.post("/settings/default-model/", {"model": "scripted/second"})
    assert AiModel.objects.find_default() == second
    assert signed_in.post("/settings/default-model/", {"model": "no number"}).status_code == 404


@pytest.fixture
def operator(signed_in: Client, user: User) -> Client:
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    return signed_in


def test_only_who_may_change_providers_sees_them_and_stores_a_key(
    signed_in: Client, user: User, model: AiModel
) -> None:
    assert "The services that run the language models" not in get_html(signed_in, "/settings/")
    for act in ("key", "test"):
        assert (
            signed_in.post(
                f"/settings/providers/{model.provider_id}/{act}/", {"key": "sk-x"}
            ).status_code
            == 403
        )
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    assert "The services that run the language models" in get_html(signed_in, "/settings/")
    row = signed_in.post(
        f"/settings/providers/{model.provider_id}/key/", {"key": " sk-secret "}
    ).content.decode()
    assert "The key is stored encrypted." in row
    model.provider.refresh_from_db()
    assert model.provider.reveal_api_key() == "sk-secret"
    assert "sk-secret" not in row + get_html(signed_in, "/settings/")


def test_a_provider_is_tried_with_one_tiny_call(
    operator: Client, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.script(
        Reply(text="OK"),
        Reply(status=401, body=b'{"error": {"message": "no such key", "code": "invalid_api_key"}}'),
    )
    address = f"/settings/providers/{model.provider_id}/test/"
    assert "test-model answered in" in operator.post(address).content.decode()
    assert "field-error" in operator.post(address).content.decode()
    assert len(scripted.requests) == 2
    AiModel.objects.update(is_active=False)
    assert "no active language model" in operator.post(address).content.decode()


def test_without_a_model_a_new_chat_says_what_to_do(
    signed_in: Client, user: User, model: AiModel
) -> None:
    assert "onboarding-title" not in get_html(signed_in, "/new/")
    assert "HX-Refresh" in signed_in.get("/new/model/").headers
    AiModel.objects.update(is_active=False)
    page = get_html(signed_in, "/new/")
    assert "No language model yet" in page
    assert "Ask your administrator" in page
    User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
    assert "/settings/#providers" in get_html(signed_in, "/new/model/")


def test_the_embedded_model_shows_how_far_it_is(
    signed_in: Client, settings: Any, tmp_path: Path
) -> None:
    AiModel.objects.update(is_active=False)
    settings.LOCAL_MODEL = settings.LOCAL_MODEL | {
        "SIZE": "0.5b",
        "PATH": "",
        "FOLDERS": [tmp_path],
    }
    weights = WEIGHTS_BY_SIZE["0.5b"]
    partial = tmp_path / f"{weights.file_name}.partial"
    partial.touch()
    os.truncate(partial, weights.size // 4)
    assert "<span>24 %</span>" in get_html(
        signed_in, "/new/model/"
    ) or "<span>25 %</span>" in get_html(signed_in, "/new/model/")
    os.utime(partial, (1, 1))  # it stopped long ago
    assert "No language model yet" in get_html(signed_in, "/new/model/")
    partial.rename(tmp_path / weights.file_name)
    assert "is starting" in get_html(signed_in, "/new/model/")


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


def test_templates_ask_the_database_nothing(
    signed_in: Client, session: Session, django_assert_max_num_queries: Any
) -> None:
    turn = Turn.objects.create(session=session, status="completed", lease_until=timezone.now())
    for _ in range(20):
        say(session, "user", "Hello", turn=turn)
        say(session, "assistant", "Hello", turn=turn)
    with django_assert_max_num_queries(10):
        signed_in.get(f"/c/{session.pk}/")
