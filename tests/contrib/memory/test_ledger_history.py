"""The ledger follows its messages: deleted, superseded, restored, forked, and verified."""

import json

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from chatcore.models import ContextRevision, Message, Session
from chatcore.transfer.exporter import export_session
from chatcore.transfer.importer import import_session
from chatcore.transfer.reader import InvalidImport
from chatcore.turns import forks
from compaction.memory.ledger import changes, recorder
from compaction.memory.models import LedgerLine
from compaction.models import SessionState
from compaction.sessions import session_context
from tests.support.compaction_sessions import fill_session, say
from tests.support.ledger_sessions import RULE, compact, list_texts, read_next_request, session
from tests.support.scripted_model import ScriptedModel

__all__ = ["session"]

pytestmark = pytest.mark.django_db(transaction=True)

PORT = "The staging port is 8080."
NEW_PORT = "The staging port is 9090 now."


def get_message(session: Session, content: str) -> Message:
    return session.messages.get(content=content)


def find_stored_texts(session: Session, words: str) -> list[str]:
    """Return where words are stored beside messages."""
    rows = [*ContextRevision.objects.filter(session=session), *LedgerLine.objects.all()]
    return [str(row) for row in rows if words in json.dumps(vars(row), default=str)]


def test_deleting_a_message_deletes_its_lines_and_their_words(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(session, RULE)
    fill_session(session)
    compact(session)
    assert find_stored_texts(session, RULE)
    assert api.delete(f"/api/v1/messages/{get_message(session, RULE).pk}").status_code == 204
    assert not find_stored_texts(session, RULE)
    assert RULE not in read_next_request(session, scripted)
    call_command("verify", str(session.pk))


def test_an_edited_line_of_a_message_that_is_still_sent_goes_with_it(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session)
    compact(session)
    say(session, RULE)
    line = LedgerLine.objects.get(session=session, kind="rule")
    changes.change_line(session.pk, line.pk, {"text": "Never fly on a Sunday."})
    fill_session(session)
    compact(session)
    assert len(find_stored_texts(session, "Never fly on a Sunday.")) > 2
    api.delete(f"/api/v1/messages/{get_message(session, RULE).pk}")
    assert not find_stored_texts(session, "Never fly on a Sunday.")
    assert not find_stored_texts(session, RULE)


def test_what_another_message_says_too_is_read_again(api: APIClient, session: Session) -> None:
    say(session, RULE)
    say(session, f"Again: hello.\n\n{RULE}")
    assert list_texts(session, kind="rule") == [RULE]
    api.delete(f"/api/v1/messages/{get_message(session, RULE).pk}")
    say(session, "Thanks.")
    assert list_texts(session, kind="rule") == [RULE]
    assert LedgerLine.objects.get(kind="rule").seq == 3


def test_when_the_newer_value_is_deleted_the_older_one_is_current(
    api: APIClient, session: Session
) -> None:
    say(session, PORT)
    say(session, NEW_PORT)
    assert list_texts(session, status="current") == [NEW_PORT]
    api.delete(f"/api/v1/messages/{get_message(session, NEW_PORT).pk}")
    assert list_texts(session, status="current") == [PORT]


def test_superseded_messages_take_their_lines_out_and_bring_them_back(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    say(session, PORT)
    say(session, NEW_PORT)
    message = get_message(session, NEW_PORT)
    response = api.patch(f"/api/v1/messages/{message.pk}", {"content": "Hello."}, format="json")
    assert response.status_code < 300, response.json()
    address = f"/api/v1/sessions/{session.pk}/ledger"
    assert [(line["text"], line["status"]) for line in api.get(address).json()["results"]] == [
        (PORT, "current")
    ]
    call_command("verify", str(session.pk))
    shown = api.post(f"/api/v1/messages/{message.pk}/restore")
    assert shown.status_code < 300, shown.content
    lines = {line["text"]: line["status"] for line in api.get(address).json()["results"]}
    assert lines == {PORT: "superseded", NEW_PORT: "current"}
    call_command("verify", str(session.pk))


def test_a_fork_has_the_lines_of_its_messages(session: Session, scripted: ScriptedModel) -> None:
    say(session, f"Hello! {RULE} {PORT}")
    fill_session(session)
    compact(session)
    say(session, NEW_PORT)
    changes.add_line(session.pk, {"kind": "rule", "text": "Be brief."})
    fork = forks.fork_session(session.messages.get(seq=15))
    assert set(list_texts(fork, status="current")) >= {RULE, PORT, "Be brief."}
    assert NEW_PORT not in list_texts(fork)
    request = read_next_request(fork, scripted)
    assert all(text in request for text in (RULE, PORT, "Be brief."))
    call_command("verify", str(fork.pk))


def test_a_message_that_is_deleted_while_it_is_read_is_not_written_down(
    api: APIClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_session(session, messages=2, tokens=10)
    Message.objects.filter(session=session, seq=1).update(content=RULE)
    context = session_context.load_session_context(session.pk)
    assert context
    recognize_lines = recorder.recognize_lines

    def delete_and_recognize(text: str, *, role: str, seq: int) -> object:
        if text == RULE:
            api.delete(f"/api/v1/messages/{get_message(session, RULE).pk}")
        return recognize_lines(text, role=role, seq=seq)

    monkeypatch.setattr(recorder, "recognize_lines", delete_and_recognize)
    recorder.record_all_lines(context)
    assert not LedgerLine.objects.exists()


def test_verify_names_a_line_without_its_message(
    session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    say(session, RULE)
    LedgerLine.objects.filter(session=session).update(seq=99)
    with pytest.raises((SystemExit, CommandError)):
        call_command("verify", str(session.pk))
    assert "of message 99, which does not exist" in capsys.readouterr().out


def test_deleting_the_session_leaves_nothing(api: APIClient, session: Session) -> None:
    say(session, RULE)
    assert LedgerLine.objects.exists()
    assert api.delete(f"/api/v1/sessions/{session.pk}").status_code == 204
    assert not LedgerLine.objects.exists()
    assert not SessionState.objects.exists()


def test_an_import_has_what_a_person_changed(session: Session, scripted: ScriptedModel) -> None:
    say(session, f"Hello! {RULE} {PORT}")
    changes.add_line(session.pk, {"kind": "rule", "text": "Be brief."})
    rule = LedgerLine.objects.get(session=session, kind="rule", seq=1)
    changes.change_line(session.pk, rule.pk, {"status": "dropped"})
    fill_session(session)
    copy = import_session(session.owner, json.loads(json.dumps(export_session(session))))
    compact(copy)
    assert {"Be brief.", PORT} <= set(list_texts(copy, status="current"))
    assert list_texts(copy, status="current", text=RULE) == []
    request = read_next_request(copy, scripted)
    assert ("- Be brief." in request, PORT in request, RULE in request) == (True, True, False)
    call_command("verify", str(copy.pk))


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("rule", "ledger[0]"),
        ({"kind": "order", "status": "current", "text": "x"}, "ledger[0].kind"),
        ({"kind": "rule", "status": "current", "text": "x" * 401}, "ledger[0].text"),
        ({"kind": "rule", "status": "current", "text": "x", "seq": 99}, "ledger[0].seq"),
        ({"kind": "rule", "status": "current", "text": "x", "seq": 10**20}, "ledger[0].seq"),
        ({"kind": "rule", "status": "current", "text": "x", "pinned": 1}, "ledger[0].pinned"),
    ],
)
def test_an_import_names_what_is_no_line(session: Session, line: object, field: str) -> None:
    export_data = export_session(session) | {"ledger": [line]}
    with pytest.raises(InvalidImport) as caught:
        import_session(session.owner, export_data)
    assert caught.value.field == field
    assert Session.objects.count() == 1
