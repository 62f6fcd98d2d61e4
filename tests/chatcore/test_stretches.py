"""Stretches of a long chat: what a page shows at a time, wherever in it one reads."""

from uuid import uuid4

import pytest

from chatcore.models import Message, Session
from chatcore.turns import versions
from chatcore.web import message_pages
from chatcore.web.message_pages import MAX_PAGE_SIZE, PAGE_SIZE, MessagePage

pytestmark = pytest.mark.django_db


def spoken(session: Session, first: int, last: int) -> None:
    """Questions and answers of these numbers."""
    roles = ("assistant", "user")
    Message.objects.bulk_create(
        Message(session=session, seq=seq, role=roles[seq % 2], content=str(seq))
        for seq in range(first, last + 1)
    )


def seqs(stretch: MessagePage) -> list[int]:
    return [entry.message.seq for entry in stretch.entries]


def test_the_newest_messages_and_those_before_and_after_one(session: Session) -> None:
    spoken(session, 1, 300)
    newest = message_pages.load_newest_page(session)
    assert (seqs(newest), newest.before, newest.after) == (
        [*range(301 - PAGE_SIZE, 301)],
        301 - PAGE_SIZE,
        None,
    )
    earlier = message_pages.load_page_before(session, 241)
    assert (seqs(earlier), earlier.before) == ([*range(181, 241)], 181)
    assert message_pages.load_page_before(session, 11).before is None
    later = message_pages.load_page_after(session, 100)
    assert (seqs(later), later.after) == ([*range(101, 161)], 160)
    assert message_pages.load_page_after(session, 240).after is None


def test_a_message_long_ago_stands_among_its_neighbors(session: Session) -> None:
    spoken(session, 1, 300)
    around = message_pages.load_page_around(session, 100)
    assert (seqs(around), around.before, around.after) == ([*range(71, 131)], 71, 130)
    at_the_end = message_pages.load_page_around(session, 299)
    assert (seqs(at_the_end), at_the_end.before, at_the_end.after) == (
        [*range(270, 301)],
        270,
        None,
    )
    assert message_pages.load_page_around(session, 1).before is None


def test_what_a_page_shows_is_told_again_as_it_is_now(session: Session) -> None:
    spoken(session, 1, 300)
    assert seqs(message_pages.load_page_since(session, 150)) == [*range(150, 301)]
    assert seqs(message_pages.load_page_since(session, 2)) == [*range(301 - MAX_PAGE_SIZE, 301)]
    assert seqs(message_pages.load_page_from(session, 50, 70)) == [*range(50, 120)]
    session.messages.filter(seq__range=(60, 290)).update(branch=uuid4(), branch_after=59)
    assert seqs(message_pages.load_page_from(session, 50, 70)) == [*range(50, 60), *range(291, 301)]
    session.messages.filter(seq__gte=50).update(branch=uuid4(), branch_after=49)
    assert seqs(message_pages.load_page_from(session, 50, 70)) == [*range(1, 50)]


def test_nonsense_leads_to_the_newest_messages(session: Session) -> None:
    spoken(session, 1, 100)
    for asked in (
        {},
        {"at": "x"},
        {"at": "-1"},
        {"before": "9" * 40},
        {"size": "4"},
        {"since": "5", "size": "0"},
        {"after": "٣"},
    ):
        assert seqs(message_pages.load_requested_page(session, asked)) == [*range(41, 101)], asked


def test_results_stay_with_their_calls_wherever_a_stretch_ends(session: Session) -> None:
    spoken(session, 1, 59)
    calls = [{"id": f"call_{number}", "name": "look", "arguments": "{}"} for number in range(4)]
    Message.objects.create(session=session, seq=60, role="assistant", tool_calls=calls)
    for number in range(4):
        Message.objects.create(
            session=session,
            seq=61 + number,
            role="tool",
            tool_call_id=f"call_{number}",
            tool_name="look",
        )
    spoken(session, 65, 122)
    whole = [
        message_pages.load_page_before(session, 65),
        message_pages.load_page_after(session, 59),
        message_pages.load_page_around(session, 62),
        message_pages.load_page_around(session, 60),
    ]
    for stretch in whole:
        asking = next(entry for entry in stretch.entries if entry.message.seq == 60)
        assert [call.result.seq for call in asking.calls if call.result] == [61, 62, 63, 64]
    for stretch in (
        message_pages.load_page_before(session, 123),
        message_pages.load_page_after(session, 0),
    ):
        assert not set(seqs(stretch)) & {60, 61, 62, 63, 64}


def test_each_of_many_versions_knows_all_of_them(session: Session) -> None:
    first = Message.objects.create(session=session, seq=1, role="user", content="1")
    chain = [first]
    for seq in range(2, 30):
        chain.append(
            Message.objects.create(
                session=session, seq=seq, role="user", content=str(seq), replaces=chain[-1]
            )
        )
    other = Message.objects.create(
        session=session, seq=30, role="user", content="30", replaces=first
    )
    ids = [message.pk for message in (*chain, other)]
    assert versions.map_message_versions(session.pk) == dict.fromkeys(ids, ids)
