"""What a user takes back is taken back: corrections stand with what they correct."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.turns.deletion import delete_message
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines
from compaction.memory.core.ledger.removal import TakenBack, read_statements
from compaction.memory.core.ledger.rendering import render_ledger
from compaction.memory.models import LedgerLine as StoredLine
from tests.support.compaction_sessions import fill_session, say
from tests.support.ledger_sessions import compact, read_next_request, session  # noqa: F401
from tests.support.scripted_model import ScriptedModel

# "held out" was written before the tables, and run once after them: 12 of 13 were right.
PAIRS = json.loads((Path(__file__).parents[2] / "data" / "taken_back.json").read_text())
BETWEEN = ["Thanks, that helps.", "The invoice INV-118 is over 90 €.", "What else is there to do?"]


def render(texts: Iterable[str]) -> str:
    lines: tuple[LedgerLine, ...] = ()
    for seq, text in enumerate(texts, start=1):
        lines = merge_lines(lines, recognize_lines(text, role="user", seq=seq))
    return render_ledger(lines, max_chars=4_000)


def is_told_right(ledger: str, old: str, new: str) -> bool:
    """Return True if the newer sentence stands, and the older one only behind it in its line."""
    if new not in ledger:
        return False
    line = next(line for line in ledger.splitlines() if new in line)
    return old not in ledger or (line.find(new) < line.find(old) and ledger.count(old) == 1)


@pytest.mark.parametrize(
    ("old", "new"),
    [*PAIRS["finding"], *PAIRS["development"], *PAIRS["held out"], *PAIRS["done"]],
)
def test_a_correction_stands_with_what_it_corrects(old: str, new: str) -> None:
    ledger = render([old, *BETWEEN, new])
    assert is_told_right(ledger, old, new), ledger


def test_what_it_is_and_a_rule_that_is_turned_round_stand_with_what_they_change() -> None:
    ledger = render(["The staging port is 8080.", "Hello.", "Actually no, make it 9090."])
    assert is_told_right(ledger, "The staging port is 8080.", "Actually no, make it 9090.")
    ledger = render(["Always answer in German.", "From now on answer in English."])
    assert is_told_right(ledger, "Always answer in German.", "From now on answer in English.")


def test_what_cannot_be_matched_stands_behind_what_was_said_just_before() -> None:
    ledger = render(["Always answer in short sentences.", "No, I meant something else entirely."])
    [line] = [line for line in ledger.splitlines() if "something else" in line]
    assert "(said after: “Always answer in short sentences.” [1])" in line


REPEATED = [
    "I have already paid them a deposit of 150 euros.",
    "It needs four strong people to put up.",
    "Fridays are fine again.",
]


@pytest.mark.parametrize("sentence", REPEATED)
def test_what_is_said_a_second_time_corrects_nothing(sentence: str) -> None:
    messages = [(1, "Rui sells us wine at four euros a bottle."), (3, sentence), (9, sentence)]
    assert TakenBack(read_statements(messages)).list_changes() == []


def test_what_is_said_again_corrects_what_was_said_since() -> None:
    fine = "Peanuts are fine again."
    texts = [fine, "I am allergic to peanuts after all.", fine]
    changes = TakenBack(read_statements(enumerate(texts, start=1))).list_changes()
    assert any("[message 3]" in change and "allergic" in change for change in changes), changes


def test_what_a_correction_is_not_about_stays_where_it_is() -> None:
    ledger = render(["The port is 8080.", "The budget is $6,180.", "No, I meant $7,500."])
    assert "- [1] The port is 8080." in ledger.splitlines()


def test_a_correction_and_what_it_corrects_are_left_out_together() -> None:
    texts = ["Never schedule anything on Fridays.", "Fridays are fine again."]
    lines: tuple[LedgerLine, ...] = ()
    for seq, text in enumerate([*texts, "The port is 8080."], start=1):
        lines = merge_lines(lines, recognize_lines(text, role="user", seq=seq))
    text = render_ledger(lines, max_chars=200)
    assert "Fridays" not in text
    assert "8080" in text


@pytest.mark.parametrize(
    ("told", "request_to_forget"),
    [
        (
            "My doctor's number is 555-0143 and her name is Vogel, always remember that.",
            "Please forget what I told you about my doctor.",
        ),
        ("I take 5 mg of Lisinopril every day.", "Forget everything I said about Lisinopril."),
        ("Mein Hausarzt hat die Nummer 555-0143.", "Vergiss bitte alles über meinen Hausarzt."),
        ("Mon médecin a le numéro 555-0143.", "Oublie ce que je t'ai dit sur mon médecin."),
    ],
)
def test_what_is_to_be_forgotten_is_told_no_more(told: str, request_to_forget: str) -> None:
    assert told in render([told, *BETWEEN])
    ledger = render([told, *BETWEEN, request_to_forget])
    assert told not in ledger
    assert "555-0143" not in ledger
    assert "INV-118" in ledger
    [line] = [line for line in ledger.splitlines() if request_to_forget in line]
    assert "only deleting them removes it" in line


def test_what_shares_a_word_with_the_subject_stays() -> None:
    told = [
        "My phone's PIN is 4410.",
        "My mother's phone number is 0221 8841.",
        "Project Heron costs 900 euros.",
    ]
    ledger = render([*told, "Forget what I told you about my mother's phone."])
    assert "4410" in ledger
    assert "8841" not in ledger
    ledger = render([*told, "Forget what I told you about project Falcon."])
    assert "Heron" in ledger
    assert "only deleting them removes it" not in ledger


@pytest.mark.parametrize(
    ("told", "request_to_forget"),
    [
        (
            "Carla lives at 14 Elm Street.",
            "Could you please disregard everything I said about Carla?",
        ),
        (
            "The Wi-Fi password is tulip-442.",
            "Don't remember what I said about the Wi-Fi password.",
        ),
        ("Le loyer est de 840 euros.", "Tu peux oublier ce que j'ai dit du loyer."),
        (
            "Mein Chef hat die Nummer 555-0199.",
            "Kannst du bitte vergessen, was ich über meinen Chef sagte?",
        ),
    ],
)
def test_other_words_for_forget(told: str, request_to_forget: str) -> None:
    assert told in render([told])
    assert told not in render([told, *BETWEEN, request_to_forget])


def test_forget_that_is_about_what_was_said_last() -> None:
    ledger = render(["The port is 8080.", "The alarm code is 4711.", "Please forget that."])
    assert "8080" in ledger
    assert "4711" not in ledger


def test_not_to_forget_forgets_nothing() -> None:
    ledger = render(["The alarm code is 4711.", "Don't forget the alarm code."])
    assert "4711" in ledger


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("undo", ["drop the line", "delete the message"])
def test_what_was_forgotten_comes_back_with_the_request_to_forget(
    session: Session,  # noqa: F811
    api: APIClient,
    scripted: ScriptedModel,
    undo: str,
) -> None:
    told = "My doctor's number is 555-0143, always remember that."
    forget = "Please forget what I told you about my doctor."
    say(session, told)
    session.refresh_from_db()
    fill_session(session)
    compact(session)
    assert "555-0143" in read_next_request(session, scripted)
    say(session, forget)
    request = read_next_request(session, scripted)
    assert "555-0143" not in request
    assert "only deleting them removes it" in request
    if undo == "drop the line":
        line = StoredLine.objects.get(session=session, text=forget)
        address = f"/api/v1/sessions/{session.pk}/ledger/{line.pk}"
        assert api.patch(address, {"status": "dropped"}).status_code == 200
    else:
        delete_message(session.messages.get(content=forget))
    assert "555-0143" in read_next_request(session, scripted)


@pytest.mark.django_db(transaction=True)
def test_the_ledger_says_what_is_corrected_and_forgotten(
    session: Session,  # noqa: F811
    api: APIClient,
) -> None:
    texts = [
        "The port is 8080.",
        "My doctor's number is 555-0143.",
        "No, I meant 9090 for the port.",
        "Please forget what I told you about my doctor.",
    ]
    for text in texts:
        say(session, text)
    session.refresh_from_db()
    fill_session(session)
    compact(session)
    lines = api.get(f"/api/v1/sessions/{session.pk}/ledger").json()["results"]
    ids = {text: session.messages.get(content=text).pk for text in texts}
    states = {line["text"]: (line["corrected_by"], line["forgotten_by"]) for line in lines}
    assert states[texts[0]] == (ids[texts[2]], None)
    assert states[texts[1]] == (None, ids[texts[3]])
    assert states[texts[2]] == states[texts[3]] == (None, None)
