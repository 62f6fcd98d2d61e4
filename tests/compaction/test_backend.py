"""Chatcore in compaction's words: what is sent, what it weighs, and what a pass leaves behind."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from chatcore.context import revisions
from chatcore.files import intake
from chatcore.models import Message, Session
from chatcore.providers.base import Request
from compaction.core.outcome import Outcome
from compaction.core.transcript import Transcript, TranscriptEdit
from compaction.sessions.built_requests import keep_entries, parse_request, rebuild_request
from compaction.sessions.facts import (
    SessionFacts,
    count_live_messages,
    load_session_facts,
    sum_message_tokens,
)
from compaction.sessions.transcripts import install_outcome, load_transcript
from models_registry.models import AiModel
from tests.support.sample_files import build_png

pytestmark = pytest.mark.django_db


@pytest.fixture
def talked(session: Session) -> Session:
    """Ten messages of 100 stored tokens each."""
    rows = [
        Message(
            session=session,
            seq=seq,
            role="user" if seq % 2 else "assistant",
            content=f"{seq:02d}" + "x" * 398,
        )
        for seq in range(1, 11)
    ]
    Message.objects.bulk_create(rows)
    Session.objects.filter(pk=session.pk).update(
        last_seq=10, message_count=10, system_prompt="Be brief."
    )
    session.refresh_from_db()
    return session


def subject(session: Session) -> SessionFacts:
    facts = load_session_facts(session.pk)
    assert facts is not None
    return facts


def load(session: Session) -> Transcript:
    return load_transcript(subject(session))


def install(session: Session, **outcome: Any) -> int:
    fields: dict[str, Any] = {
        "status": "applied",
        "summary": "They met.",
        "boundary_seq": 7,
    } | outcome
    return install_outcome(
        session.pk,
        load(session),
        Outcome(**fields),
        run="r",
        background="TASKS: none",
        placement={"place": "first_user"},
    )


def seqs(transcript: Transcript) -> list[int]:
    return [entry.seq for entry in transcript.entries]


def test_what_a_pass_leaves_is_what_the_next_one_finds(talked: Session) -> None:
    assert install(talked, exempt_seqs=(1, 2), marker="[left out]", summarized_up_to=8) == 1
    transcript = load(talked)
    assert seqs(transcript) == [1, 2, 7, 8, 9, 10]
    assert (
        transcript.summary,
        transcript.boundary_seq,
        transcript.marker,
        transcript.summarized_up_to,
    ) == (
        "They met.",
        7,
        "[left out]",
        8,
    )
    assert subject(talked).live.kept_seqs == (1, 2)
    revision = talked.revisions.get()
    assert (revision.background, revision.placement["place"], revision.run) == (
        "TASKS: none",
        "first_user",
        "r",
    )


def test_a_pass_over_a_context_that_changed_is_refused(talked: Session) -> None:
    old = load(talked)
    install(talked)
    with pytest.raises(revisions.StaleContext):
        install_outcome(
            talked.pk, old, Outcome(status="applied", summary="x", boundary_seq=9), run="r"
        )


def test_an_edited_message_comes_with_what_it_was_and_weighs_what_it_is(talked: Session) -> None:
    install(
        talked,
        boundary_seq=None,
        summary=None,
        edits=(TranscriptEdit(seq=2, kind="excerpted", replacement="short"),),
    )
    second = load(talked).entries[1]
    assert (second.content, second.original, second.tokens) == ("short", "02" + "x" * 398, 1)
    assert load(talked).entries[0].original is None
    assert sum_message_tokens(subject(talked)) == 901


def test_only_what_is_sent_weighs_and_counts(talked: Session) -> None:
    talked.messages.filter(seq=3).update(pinned=True)
    talked.messages.filter(seq=10).update(branch=UUID(int=1), branch_after=9)
    install(talked, exempt_seqs=(1,))
    now = subject(talked)
    assert [entry.pinned for entry in load(talked).entries] == [False, True, False, False, False]
    assert seqs(load(talked)) == [1, 3, 7, 8, 9]
    assert (
        sum_message_tokens(now),
        count_live_messages(now),
    ) == (500, 5)
    assert sum_message_tokens(now, after_seq=7) == 200


def test_what_stands_for_older_messages_is_no_message_and_is_never_left_out(
    talked: Session,
) -> None:
    install(talked)
    request = rebuild_request(talked)
    parsed_transcript = parse_request(request, None).transcript
    assert len(parsed_transcript.entries) == 4
    assert "They met." in (parsed_transcript.summary or "")
    smaller_request = keep_entries(request, parsed_transcript.entries[-1:])
    assert isinstance(smaller_request, Request)
    assert [message.seq for message in smaller_request.messages] == [None, 10]
    assert "They met." in smaller_request.messages[0].content


def test_a_request_that_is_built_again_keeps_what_its_turn_alone_says(talked: Session) -> None:
    request = rebuild_request(talked)
    assert isinstance(request, Request)
    request = replace(request, params={"tool_choice": "none"})
    rebuilt_request = rebuild_request(talked, request)
    assert isinstance(rebuilt_request, Request)
    assert rebuilt_request.params == {"tool_choice": "none"}


def test_images_are_counted_where_they_are_sent(talked: Session) -> None:
    for seq in (1, 3):
        with_image = intake.store_file(talked, name="cat.png", data=build_png(4, 3))
        intake.bind_files(talked.messages.get(seq=seq), [with_image.pk])
    AiModel.objects.update(supports_images=True)
    install(
        talked,
        boundary_seq=None,
        summary=None,
        edits=(TranscriptEdit(seq=3, kind="images_stripped", replacement="[no image]"),),
    )
    assert [entry.images for entry in load(talked).entries[:3]] == [1, 0, 0]


def test_a_summary_of_messages_still_sent_is_stale_when_one_of_these_changes(
    talked: Session,
) -> None:
    install(talked, boundary_seq=3, summarized_up_to=8)
    assert revisions.revert_summaries_covering(talked, [9]) is None
    assert revisions.revert_summaries_covering(talked, [8]) == 2
    assert load(talked).summary is None


def test_files_and_images_are_measured_where_they_are_sent(talked: Session) -> None:
    AiModel.objects.update(supports_images=True)
    for seq in (1, 2, 4, 5, 8, 9):
        texts = [
            intake.store_file(talked, name=f"{seq}.txt", data=b"words " * 200),
            intake.store_file(talked, name=f"{seq}.png", data=build_png(4, 3)),
        ]
        intake.bind_files(talked.messages.get(seq=seq), [each.pk for each in texts])
    each = subject(talked).sizes.attached_tokens // 6
    assert subject(talked).sizes.attached_images == 6
    talked.messages.filter(seq=2).update(pinned=True)
    edits = (
        TranscriptEdit(seq=1, kind="excerpted", replacement="short"),
        TranscriptEdit(seq=8, kind="excerpted", replacement="short"),
    )
    install(talked, exempt_seqs=(1, 5), edits=edits)
    now = subject(talked)
    assert (now.sizes.attached_tokens, now.sizes.attached_images) == (
        each * 3,
        3,
    )  # of the messages 2, 5 and 9
    assert sum(entry.images for entry in load(talked).entries) == 3
    AiModel.objects.update(supports_images=False)
    assert subject(talked).sizes.attached_images == 0


def test_tools_that_the_client_runs_are_measured_while_their_turn_is_open(talked: Session) -> None:
    AiModel.objects.update(supports_tools=True)
    before = subject(talked).sizes.tool_chars
    theirs = {
        "name": "look_up",
        "description": "Looks it up. " * 100,
        "parameters": {"type": "object", "properties": {}},
    }
    turn = talked.turns.create(status="waiting", tools=[theirs], lease_until=timezone.now())
    assert subject(talked).sizes.tool_chars > before + 1_200
    assert len(load(talked).tools) == subject(talked).sizes.tool_chars
    turn.status = "completed"
    turn.save()
    assert subject(talked).sizes.tool_chars == len(load(talked).tools) == before


def test_a_summary_in_the_system_text_is_a_summary_where_system_texts_do_not_count(
    talked: Session,
) -> None:
    install_outcome(
        talked.pk,
        load(talked),
        Outcome(status="applied", summary="They met. " * 100, boundary_seq=7),
        run="r",
    )
    parsed_transcript = parse_request(rebuild_request(talked), None).transcript
    assert parsed_transcript.system.strip() == "Be brief."
    assert "They met." in (parsed_transcript.summary or "")
