"""A chat's page as the server renders it: its messages, its boundary, and its turns."""

import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chatcore.contrib.holds.models import Hold
from chatcore.contrib.sharing.links import MAX_SHARES
from chatcore.contrib.sharing.models import Share
from chatcore.models import Message, Session, Turn
from tests.support.rendered_pages import get_html, say, signed_in

__all__ = ["signed_in"]

pytestmark = pytest.mark.django_db


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


def test_a_result_whose_rest_is_not_stored_says_so(signed_in: Client, session: Session) -> None:
    calls = [{"id": "call_1", "name": "calculate", "arguments": "{}"}]
    say(session, "assistant", "", tool_calls=calls)
    say(session, "tool", "x" * 200_000, tool_call_id="call_1", tool_name="calculate")
    page = get_html(signed_in, f"/c/{session.pk}/")
    assert page.count("Shortened from 200,000 characters. The rest is not stored.") == 1


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
    page = get_html(signed_in, f"/c/{session.pk}/")
    assert notice in page
    assert "The oldest messages no longer fit, and the model does not see them.</span>" in page


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


def test_templates_ask_the_database_nothing(signed_in: Client, session: Session) -> None:
    turn = Turn.objects.create(session=session, status="completed", lease_until=timezone.now())

    def count_queries_with(messages: int) -> int:
        for _ in range(messages // 2):
            say(session, "user", "Hello", turn=turn)
            say(session, "assistant", "Hello", turn=turn)
        with CaptureQueriesContext(connection) as queries:
            signed_in.get(f"/c/{session.pk}/")
        return len(queries)

    count_queries_with(0)  # the first page of a browser notes the browser
    assert count_queries_with(2) == count_queries_with(38)


def test_a_refusal_to_share_is_in_the_language_of_the_page(
    signed_in: Client, session: Session
) -> None:
    def try_to_share() -> str:
        german = {"Accept-Language": "de"}
        return signed_in.post(f"/c/{session.pk}/share/new/", {}, headers=german).content.decode()

    assert "Es gibt noch nichts zu teilen." in try_to_share()
    say(session, "user", "Where is the key?")
    Session.objects.filter(pk=session.pk).update(message_count=1)
    Share.objects.bulk_create(
        Share(owner=session.owner, session=session, digest=str(number), spans=[[1, 1]], last_seq=1)
        for number in range(MAX_SHARES)
    )
    assert "Es gibt schon 1.000 Links, mehr geht nicht." in try_to_share()
    Hold.objects.create(user=session.owner, reason="A court asks.")
    assert "aus rechtlichen Gründen aufbewahrt" in try_to_share()
