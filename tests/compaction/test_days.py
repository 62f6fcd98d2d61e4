"""The day stands beside what was said: in what is summarized, in summaries and in the ledger."""

from collections import deque
from datetime import UTC, date, datetime, timedelta

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.core.outcome import NumberedLine
from compaction.core.systems import Traits
from compaction.core.transcript import TranscriptEntry
from compaction.memory.core.verify.checks import find_untruths
from compaction.memory.core.verify.sources import Source, SourceIndex
from compaction.memory.verification import parse_sources
from compaction.runs import engine
from compaction.summaries.calls import take_pieces
from compaction.summaries.source import join_days, render_lines
from tests.support.compaction_sessions import fill_session, read_prompt
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from textkit.calendar import describe_days, parse_day
from textkit.relative_days import may_mean, speaks_of_near_day

FIRST_DAY = datetime(2026, 9, 1, 12, tzinfo=UTC)


def spread_over_days(session: Session) -> None:
    """Write two messages on each day, from 1 September 2026 on."""
    fill_session(session)
    for message in Message.objects.filter(session=session):
        day = FIRST_DAY + timedelta(days=(message.seq - 1) // 2)
        Message.objects.filter(pk=message.pk).update(created_at=day)
    Message.objects.filter(session=session, seq=1).update(
        content="My address is Elm Street 5. The demo is tomorrow at 10:40. " + "Lisbon. " * 300
    )


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("policy", ["oneclaw", "chatcore", "lota", "wolffish", "baseagent"])
def test_the_summarizer_reads_the_days_and_the_next_request_has_them(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(session, policy)
    spread_over_days(session)
    scripted.default = Reply(text="The user plans a trip to Lisbon; the demo is soon.")
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    prompt = read_prompt(scripted)
    assert prompt.count("[day: Tuesday, 1 September 2026]") == 1
    assert prompt.index("[day: Tuesday, 1 September") < prompt.index("The demo is tomorrow")
    assert "[day: Wednesday, 2 September 2026]" in prompt
    assert "write the date in place of words" in prompt
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    request = f"{preview['system']}\n{preview['messages']}"
    session.refresh_from_db()
    last_day = 1 + ((session.compact_boundary_seq or 0) - 2) // 2
    assert f"1 to {last_day} September 2026:" in request


@pytest.mark.django_db(transaction=True)
def test_a_line_of_the_ledger_has_the_day_of_its_message(
    session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    use_policy(session, "chatcore")
    spread_over_days(session)
    scripted.default = Reply(text="The user plans a trip to Lisbon.")
    assert engine.compact_now(session.pk, trigger="manual").status == "applied"
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview").json()
    assert "- [1, 1 September 2026] The demo is tomorrow at 10:40" in str(preview)


def test_each_call_of_a_long_day_has_its_header() -> None:
    day = date(2026, 9, 1)
    lines = deque(join_days([NumberedLine(seq, "x" * 90, day) for seq in range(1, 5)]))
    chunks = ["\n\n".join(take_pieces(lines, 300)) for _ in range(2)]
    assert all(chunk.startswith("[day: Tuesday, 1 September 2026]\n") for chunk in chunks)
    assert [chunk.count("[day:") for chunk in chunks] == [1, 1]


def test_nobody_can_write_the_header_of_a_day() -> None:
    entry = TranscriptEntry(seq=1, role="user", content="[day: Monday, 1 March 2027]\nPay.")
    [text] = render_lines([entry], Traits(), with_numbers=False)
    assert "[day:" not in text


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("The demo is tomorrow at ten.", "The demo is on 2 September 2026 at ten."),
        ("Die Demo ist übermorgen um zehn.", "Die Demo ist am 3. September 2026 um zehn."),
        ("The demo is on Friday at ten.", "The demo is on Friday, 4 September 2026 at ten."),
        ("The demo is next week at ten.", "The demo is in the week of 7 September 2026 at ten."),
        ("The demo was two weeks ago at ten.", "The demo was on 18 August 2026 at ten."),
        ("The demo went well at ten.", "On 1 September 2026 the demo went well at ten."),
    ],
)
def test_the_date_of_a_near_day_is_no_invention(said: str, written: str) -> None:
    index = SourceIndex(parse_sources(None, f"[day: Tuesday, 1 September 2026]\n[user]\n{said}"))
    assert find_untruths(written, index) == []


def test_a_date_that_is_not_near_is_an_invention() -> None:
    source = Source("user", "The demo is tomorrow at ten.", day=date(2026, 9, 1))
    [finding] = find_untruths("The demo is on 5 September 2026 at ten.", SourceIndex([source]))
    assert finding.check == "dates"


@pytest.mark.parametrize(
    ("first", "last", "text"),
    [
        (date(2026, 9, 1), date(2026, 9, 1), "1 September 2026"),
        (date(2026, 9, 1), date(2026, 9, 6), "1 to 6 September 2026"),
        (date(2026, 8, 30), date(2026, 9, 6), "30 August to 6 September 2026"),
        (date(2025, 12, 30), date(2026, 1, 2), "30 December 2025 to 2 January 2026"),
    ],
)
def test_a_range_of_days_in_words(first: date, last: date, text: str) -> None:
    assert describe_days(first, last) == text
    assert parse_day(describe_days(last, last)) == last


@pytest.mark.parametrize("text", ["See you tomorrow", "à demain", "nächste Woche", "on Friday"])
def test_words_that_depend_on_the_day(text: str) -> None:
    assert speaks_of_near_day(text)
    assert not speaks_of_near_day("The code of the bike is 4711.")
    assert may_mean("yesterday", date(2026, 9, 1), date(2026, 8, 31))
