"""A summary tells of a file what the model read when it was sent, however little room is left."""

import pytest
from rest_framework.test import APIClient

from chatcore.context.sent_files import count_sent_chars
from chatcore.models import Message, Session
from chatcore.providers.base import File
from chatcore.turns.forks import fork_session
from compaction.core.attachments import FileEntry, fit_files
from compaction.core.knobs import FilesKnobs
from compaction.core.presets import PRESETS
from tests.support.attachment_requests import say, upload
from tests.support.compaction_sessions import (
    fill_session,
    list_summary_calls,
    summarize_or_chat,
)
from tests.support.scripted_model import ScriptedModel

answering = pytest.mark.django_db(transaction=True)  # turns are answered in another thread
KNOBS: FilesKnobs = PRESETS["oneclaw"].files
NOTES = "Notes of the journey. " * 400 + "The ferry leaves at quay seven."  # 2,200 tokens
BOOK = "A chapter of the book. " * 2_000 + "Here the book ends."  # 11,500 tokens


def send_file(api: APIClient, session: Session, text: str) -> None:
    uploaded = upload(api, session, text.encode())
    assert uploaded.status_code == 201, uploaded.json()
    answered = say(api, session, [uploaded.json()["id"]])
    assert answered.status_code == 201, answered.json()


def summarize(api: APIClient, session: Session, scripted: ScriptedModel) -> str:
    """Return what all summary calls of a run read."""
    scripted.requests.clear()
    run = api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True})
    assert run.json()["status"] == "applied", run.json()
    return "".join(str(call.json["messages"]) for call in list_summary_calls(scripted))


@pytest.fixture
def talking(session: Session, scripted: ScriptedModel) -> Session:
    scripted.default = summarize_or_chat()
    return session


@answering
def test_a_file_that_no_longer_fits_is_summarized_whole(
    talking: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    send_file(api, talking, NOTES)
    assert "quay seven" in str(scripted.requests[-1].json["messages"])
    talking.refresh_from_db()
    fill_session(talking, messages=15)
    assert "quay seven" in summarize(api, talking, scripted)


@answering
def test_of_a_file_that_was_cut_only_the_part_that_was_read_is_summarized(
    talking: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    send_file(api, talking, BOOK)
    sent = str(scripted.requests[-1].json["messages"])
    assert "of this file are left out" in sent
    question = Message.objects.get(session=talking, role="user")
    assert question.sent_file_chars
    assert question.sent_file_chars[0] // 23 == sent.count("A chapter of the book. ") > 500
    talking.refresh_from_db()
    fill_session(talking, messages=15)
    prompt = summarize(api, talking, scripted)
    assert "Here the book ends" not in prompt
    # A word or two are lost where a chunk ends inside a sentence.
    assert prompt.count("A chapter") > 0.95 * sent.count("A chapter")


@answering
def test_a_later_turn_with_less_room_changes_nothing_of_it(
    talking: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    send_file(api, talking, NOTES)
    talking.refresh_from_db()
    fill_session(talking, messages=8)
    assert say(api, talking, [], "And now?").status_code == 201
    assert Message.objects.get(session=talking, seq=1).sent_file_chars == [None]


@answering
def test_a_fork_knows_what_was_read(
    talking: Session, api: APIClient, scripted: ScriptedModel
) -> None:
    send_file(api, talking, NOTES)
    fork = fork_session(talking.messages.get(seq=2))
    fill_session(fork, messages=15)
    assert "quay seven" in summarize(api, fork, scripted)


@pytest.mark.parametrize("budget", [0, 100, 1_000])
def test_what_was_sent_of_a_text_is_found_in_any_of_its_forms(budget: int) -> None:
    [sent_text] = fit_files([FileEntry(len(BOOK), BOOK, 11_500)], budget, KNOBS)
    file = File(name="book.txt", size=len(BOOK), text=BOOK)
    chars = count_sent_chars(file, File(name="book.txt", size=len(BOOK), text=sent_text))
    assert chars == (len(BOOK) * budget // 11_500 if budget else 0)
