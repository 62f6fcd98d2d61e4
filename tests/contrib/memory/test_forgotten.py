"""What the user wants forgotten is not brought back: by searching, by recall or by an extract."""

import json
from collections.abc import Iterable, Sequence

import pytest

from chatcore.models import Session
from chatcore.providers.base import ToolCall
from chatcore.tools import registry as tool_registry
from chatcore.transfer import importer
from tests.support.compaction_sessions import list_chat_calls, say
from tests.support.scripted_model import ScriptedModel
from tests.support.stored_talk import summarize

pytestmark = pytest.mark.django_db(transaction=True)

BETWEEN = [
    ("user", "The invoice INV-118 is over 90 €."),
    ("assistant", "Noted."),
    ("user", "What else is there to do?"),
    ("assistant", "The tax papers."),
]


def fill(session: Session, messages: Iterable[tuple[str, str]]) -> None:
    importer.import_messages(session, [{"role": role, "content": text} for role, text in messages])


def search(session: Session, query: str) -> str:
    call = ToolCall(id="1", name="search_history", arguments=json.dumps({"query": query}))
    return tool_registry.run_tool(call, session_id=session.pk).content


CASES = [
    (
        "My doctor is called Vogel and sits in Elm Street, number 555-0143.",
        "Thanks, I noted your doctor Vogel, 555-0143.",
        "I'd rather you forgot everything I said about my doctor.",
        ("Vogel", "555-0143"),
    ),
    (
        "My sister has been in rehab since May, clinic number 0221-8841.",
        "I am sorry to hear that about your sister.",
        "Sorry, could you please delete what I told you about my sister?",
        ("rehab", "0221-8841"),
    ),
    (
        "Ma sœur habite au 14 rue des Lilas.",
        "C'est noté : 14 rue des Lilas.",
        "Peux-tu oublier ce que j'ai dit de ma soeur ?",
        ("Lilas",),
    ),
    (
        "Mein Chef wurde im Mai abgemahnt, Aktenzeichen AZ-5511.",
        "Notiert, AZ-5511.",
        "Ich möchte, dass du alles über meinen Chef vergisst.",
        ("abgemahnt", "AZ-5511"),
    ),
    (
        "Il mio medico ha lo studio in via Garibaldi, numero 555-0143.",
        "Annotato.",
        "Dimentica quello che ti ho detto sul mio medico.",
        ("Garibaldi", "555-0143"),
    ),
    (
        "My salary is 84,300 a year since March.",
        "Noted: 84,300.",
        "Please do not keep what I told you about my salary.",
        ("84,300",),
    ),
]


@pytest.mark.parametrize("policy", ["", "chatcore"])
@pytest.mark.parametrize(("told", "reply", "request_to_forget", "secrets"), CASES)
def test_search_history_does_not_find_it(
    session: Session,
    policy: str,
    told: str,
    reply: str,
    request_to_forget: str,
    secrets: Sequence[str],
) -> None:
    Session.objects.filter(pk=session.pk).update(policy=policy)
    fill(session, [("user", told), ("assistant", reply), *BETWEEN])
    assert all(secret in search(session, told) for secret in secrets)
    fill(session, [("user", request_to_forget), ("assistant", "I will not use it any more.")])
    found = search(session, told)
    assert not any(secret in found for secret in secrets), found
    assert "INV-118" in search(session, "the invoice")


def test_what_is_said_again_is_found(session: Session) -> None:
    fill(
        session,
        [
            ("user", "My doctor has the number 555-0143."),
            ("user", "Forget what I told you about my doctor."),
            ("user", "My new doctor has the number 555-0177."),
        ],
    )
    found = search(session, "doctor number")
    assert "555-0143" not in found
    assert "555-0177" in found


def test_the_rest_of_a_message_is_found(session: Session) -> None:
    told = "My doctor has the number 555-0143. The dentist has the number 555-0188."
    fill(session, [("user", told), ("user", "Forget what I told you about my doctor.")])
    found = search(session, "number")
    assert "555-0143" not in found
    assert "555-0188" in found


def test_recall_does_not_bring_it_back(session: Session, scripted: ScriptedModel) -> None:
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    told = "My locker at the swimming pool has the number 4711."
    fill(session, [("user", told), ("assistant", "Locker 4711 it is."), *BETWEEN])
    fill(session, [("user", "Please forget what I said about my locker."), ("assistant", "Done.")])
    summarize(session, "They talked of small things.", boundary_seq=7)
    session.refresh_from_db()
    say(session, "What was the number of my locker at the swimming pool?")
    assert "4711" not in json.dumps(list_chat_calls(scripted)[-1].json)
