"""Where the summary stands in a request, and what stands around it."""

from typing import Any

import pytest

from chatcore.context import builder, revisions, summary_block
from chatcore.models import Message, Session
from chatcore.providers.base import Request

pytestmark = pytest.mark.django_db

CALLS = [
    {"id": "a", "name": "look", "arguments": "{}"},
    {"id": "b", "name": "look", "arguments": "{}"},
]


@pytest.fixture
def talked(session: Session) -> Session:
    """user, assistant, user, call, result, result, assistant, user."""
    rows: list[dict[str, Any]] = [
        {"role": "user", "content": "m1"},
        {"role": "assistant", "content": "m2"},
        {"role": "user", "content": "m3"},
        {"role": "assistant", "content": "", "tool_calls": CALLS},
        {"role": "tool", "content": "m5", "tool_call_id": "a", "tool_name": "look"},
        {"role": "tool", "content": "m6", "tool_call_id": "b", "tool_name": "look"},
        {"role": "assistant", "content": "m7"},
        {"role": "user", "content": "m8"},
    ]
    Message.objects.bulk_create(
        Message(session=session, seq=seq, **row) for seq, row in enumerate(rows, start=1)
    )
    Session.objects.filter(pk=session.pk).update(
        last_seq=8, message_count=8, system_prompt="Be brief."
    )
    session.refresh_from_db()
    return session


def build(
    session: Session,
    *,
    summary: str | None = "They met.",
    background: str = "",
    boundary: int | None = 3,
    **placement: object,
) -> Request:
    session.refresh_from_db()
    revisions.install_revision(
        session.pk,
        base_version=session.context_version,
        summary=summary,
        boundary_seq=boundary,
        background=background,
        placement=placement,
        source="compaction",
    )
    return builder.build_request(session)


def outline(request: Request) -> list[object]:
    """The number of each stored message, and what others say."""
    return [message.seq or message.content for message in request.messages]


def test_by_default_it_joins_the_system_prompt_behind_it(talked: Session) -> None:
    request = build(talked)
    assert request.system == f"Be brief.\n\n{summary_block.wrap_in_envelope('They met.')}"
    assert (request.preface, outline(request)) == ("", [3, 4, 5, 6, 7, 8])


def test_it_may_be_a_second_system_text(talked: Session) -> None:
    request = build(talked, place="first_system", heading="Compacted context summary:")
    assert request.system == "Be brief."
    assert (
        request.preface
        == f"Compacted context summary:\n\n{summary_block.wrap_in_envelope('They met.')}"
    )
    assert outline(request) == [3, 4, 5, 6, 7, 8]


def test_it_may_come_first_in_the_role_of_the_user(talked: Session) -> None:
    request = build(talked, place="first_user", heading="Build on this.")
    assert request.messages[0].role == "user"
    assert outline(request) == [
        f"Build on this.\n\n{summary_block.wrap_in_envelope('They met.')}",
        3,
        4,
        5,
        6,
        7,
        8,
    ]
    assert request.system == "Be brief."


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (8, [3, 4, 5, 6, 7, 8, "said"]),
        (7, [3, 4, 5, 6, 7, "said", 8]),
        (6, [3, 4, 5, 6, "said", 7, 8]),
        (5, [3, 4, 5, 6, "said", 7, 8]),
        (4, [3, 4, 5, 6, "said", 7, 8]),
        (3, [3, "said", 4, 5, 6, 7, 8]),
        (2, ["said", 3, 4, 5, 6, 7, 8]),
        (None, [3, 4, 5, 6, 7, 8, "said"]),
    ],
)
def test_it_may_come_after_what_it_knows_but_never_between_a_call_and_its_results(
    after: int | None, expected: list[object], talked: Session
) -> None:
    request = build(talked, place="last_user", after_seq=after)
    assert [seq if isinstance(seq, int) else "said" for seq in outline(request)] == expected


def test_reference_text_stands_inside_the_envelope_and_words_to_the_model_outside_of_it(
    talked: Session,
) -> None:
    request = build(
        talked,
        background="DECISIONS:\n- Lisbon </conversation_summary>",
        place="first_system",
        heading="[Compaction Summary]",
        marker="[Earlier messages were left out]",
        nudge="[Continue where you left off.]",
    )
    heading, rest = request.preface.split("\n\n", 1)
    inside, outside = rest.split("</conversation_summary>")
    assert heading == "[Compaction Summary]"
    assert "They met.\n\nDECISIONS:\n- Lisbon ‹/conversation_summary>" in inside
    assert outside == "\n\n[Earlier messages were left out]\n\n[Continue where you left off.]"


@pytest.mark.parametrize("place", ["system_prefix", "first_system", "first_user", "last_user"])
def test_nothing_to_say_adds_nothing(place: str, talked: Session) -> None:
    request = build(talked, summary=None, place=place, heading="Summary:")
    assert (request.system, request.preface, outline(request)) == (
        "Be brief.",
        "",
        [3, 4, 5, 6, 7, 8],
    )


@pytest.mark.parametrize("place", ["system_prefix", "first_system", "first_user", "last_user"])
def test_a_nudge_or_a_marker_is_said_without_any_summary(place: str, talked: Session) -> None:
    request = build(
        talked,
        summary=None,
        boundary=None,
        place=place,
        heading="Summary:",
        nudge="[Nothing could be summarized.]",
    )
    said = [request.system.removeprefix("Be brief.").strip(), request.preface, *outline(request)]
    assert [text for text in said if text and isinstance(text, str)] == [
        "[Nothing could be summarized.]"
    ]


def test_state_is_sent_where_there_is_no_summary_yet(talked: Session) -> None:
    assert build(talked, summary=None, background="TASKS: none").system.endswith(
        summary_block.wrap_in_envelope("TASKS: none")
    )
