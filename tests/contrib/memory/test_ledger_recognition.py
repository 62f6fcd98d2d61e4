"""What is recognized in a message as a rule, a preference, a decision, a commitment or a value."""

import pytest

from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.ledger.recognition import MESSAGE_LINES, recognize_lines
from tests.support import ledger_wordings as wordings
from tests.support.ledger_messages import PlantedMessage, generate_messages

MESSAGES = 400
SEED = 20261122


def recognize(text: str) -> tuple[LedgerLine, ...]:
    return recognize_lines(text, role="user", seq=7)


def list_kinds(text: str) -> set[str]:
    return {line.kind for line in recognize(text)}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("By the way, from now on never push to main on Fridays.", "rule"),
        ("Don't ever email the client directly.", "rule"),
        ("Prices must not include VAT.", "rule"),
        ("Whenever a period comes up, use the fiscal year.", "rule"),
        ("Auf keinen Fall Kundendaten weitergeben.", "rule"),
        ("Ab jetzt immer erst Petra fragen.", "rule"),
        ("I prefer short mails.", "preference"),
        ("Please call me Jo.", "preference"),
        ("Bitte auf Deutsch.", "preference"),
        ("Let's go with PostgreSQL.", "decision"),
        ("Nehmen wir doch lieber den Zug.", "decision"),
        ("I'll send it by Friday.", "commitment"),
        ("Remind me to water the plants.", "commitment"),
        ("Erinnere mich an die Steuer.", "commitment"),
        ("The contract is not covered by the insurance.", "value"),
    ],
)
def test_a_sentence_is_recognized_as_what_it_is(text: str, kind: str) -> None:
    assert kind in list_kinds(f"Hello there. {text} Thanks a lot.")


@pytest.mark.parametrize(
    "value",
    [
        "INV-2026-118", "4711", "$1,250.50", "1.250,00 €", "2026-03-04", "March 4", "4. März",
        "14:30", "3 pm", "https://example.com/a?b=c", "/etc/hosts", "C:\\Temp\\a.txt",
        "src/app/main.py", "ada@example.com", "2.14.1", "v3", "30 GB", "12 %", "9f3c2ab",
        "db1.prod.internal", "+49 30 1234567", "ORDERS_DB_URL", "DE89 3704 0044 0532 0130 00",
    ],
)  # fmt: skip
def test_an_exact_value_is_recognized(value: str) -> None:
    lines = recognize(f"So the thing we talked about is {value} as far as I know.")
    assert any(value in line.text for line in lines)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("The staging port is 8080.", "staging port"),
        ("Please set the staging port to 9090 now.", "staging port"),
        ("9090 is the new staging port.", "staging port"),
        ("Staging port: 9090", "staging port"),
        ("The deadline for the report is May 3.", "deadline report (date)"),
        ("Der Stundensatz beträgt jetzt 95 €.", "stundensatz"),
    ],
)
def test_the_key_says_what_a_value_is_about(text: str, key: str) -> None:
    assert key in [line.key for line in recognize(text) if line.kind == "value"]


def test_two_values_of_a_sentence_have_keys_of_their_own() -> None:
    lines = recognize("The staging port is 8080 and the production port is 443.")
    assert [line.key for line in lines] == ["staging port", "production port"]


@pytest.mark.parametrize(
    "text",
    [
        "I've never been to Rome.",
        "Never mind, it works now.",
        "Is it always this slow?",
        "Should I never do that?",
        "My teacher said you must never give up.",
        'He said "never push on Fridays" and laughed.',
        "It must have been hard.",
        "Das darf doch nicht wahr sein!",
        "Das klappt bei mir nie.",
        "What do you think about it?",
        "```\nnever(do, this)\n```",
        "> you must always answer",
        "2026-01-02 10:00:00 ERROR value must never be null",
        "Here is the mail from my landlord:\nYou must never use the garden. Always close the door.",
    ],
)
def test_what_is_no_order_of_the_writer_is_no_rule(text: str) -> None:
    assert "rule" not in list_kinds(text)


PLAIN_ORDERS = {
    "en": ("Put figures only in tables.", "He only drinks tea.", "Give me six, no doubles."),
    "de": ("Beträge nur in Euro.", "Keine Ahnung, was das soll.", "Mir fehlt nur eine Zahl."),
    "es": ("Escribe siempre sin abreviaturas.", "Nunca he visto nada igual.", "Dame uno sin sal."),
    "fr": (
        "Des chiffres uniquement en tableau.",
        "Il ne vient jamais.",
        "Fais une liste, sans.",
    ),
    "it": (
        "Scrivi sempre frasi brevi.",
        "Non ho mai visto nulla.",
        "Fammi una lista, senza.",
    ),
    "pt": ("Escreve sempre sem gírias.", "Ele nunca chega a horas.", "Faz uma lista, sem nomes."),
    "zh": ("数字只用表格。", "他从来不来。", "给我写三个，不要英文。"),
    "ja": ("数字は必ず表にして。", "彼はいつも遅い。", "この行だけ消して。"),
}


@pytest.mark.parametrize("language", PLAIN_ORDERS)
def test_an_order_is_known_by_its_grammar_where_no_word_says_rule(language: str) -> None:
    order, statement, task = PLAIN_ORDERS[language]
    assert "rule" in list_kinds(order)
    assert "rule" not in list_kinds(statement)
    assert "rule" not in list_kinds(task)


@pytest.mark.parametrize(
    "text", ["No, on Saturday.", "Oh no.", "No thanks.", "You've never asked about it before."]
)
def test_an_answer_or_a_statement_with_a_small_word_is_no_order(text: str) -> None:
    assert "rule" not in list_kinds(text)


def test_the_items_under_a_title_of_rules_are_rules() -> None:
    lines = recognize("Ground rules:\n- British spelling\n- tables for numbers\n\nThanks!")
    assert [line.text for line in lines] == ["British spelling", "tables for numbers"]


def test_a_line_is_word_for_word_the_sentence_with_its_negation() -> None:
    sentence = "Do not, whatever Bob tells you, delete the 3 backups in /srv/old."
    assert {line.text for line in recognize(f"Well. {sentence} Ok?")} == {sentence}


def test_of_tools_short_labelled_values_are_taken_and_nothing_else() -> None:
    text = '{\n  "port": 8080,\n  "note": "never restart"\n}\nYou must never restart it.'
    lines = recognize_lines(text, role="tool", seq=3)
    assert [(line.key, line.text, line.kind) for line in lines] == [
        ("port", '"port": 8080', "value")
    ]
    assert not recognize_lines(f"port: 8080\n{'x' * 2_000}", role="tool", seq=3)


def test_what_the_model_says_binds_nobody() -> None:
    assert not recognize_lines("Never push. The port is 8080.", role="assistant", seq=3)


def test_a_message_has_a_limited_number_of_lines_and_rules_come_first() -> None:
    text = "\n".join(f"The port of host {number} is {number + 8000}." for number in range(900))
    lines = recognize(f"{text}\nNever restart the hosts.")
    assert len(lines) == MESSAGE_LINES
    assert lines[-1].kind == "rule"


def share_of(templates: list[str], kind: str) -> float:
    messages = list(generate_messages(templates, seed=SEED, count=MESSAGES))
    return sum(kind in list_kinds(message.text) for message in messages) / len(messages)


def test_most_plain_rules_are_recognized_without_a_model() -> None:
    """What is put otherwise, the summary model names: see test_lasting.py."""
    assert share_of(wordings.RULES_EN, "rule") >= 0.7
    assert share_of(wordings.RULES_DE, "rule") >= 0.7


@pytest.mark.parametrize(
    "text",
    [
        "Please don't include the last row this time.",
        "Never mind the layout for now, just once show it raw.",
        "Bitte diesmal keine Tabellen.",
    ],
)
def test_what_is_asked_for_once_is_no_rule(text: str) -> None:
    assert not list_kinds(text) & {"rule", "preference"}


def test_ordinary_sentences_are_no_rules() -> None:
    assert share_of(wordings.ORDINARY_EN, "rule") <= 0.02
    assert share_of(wordings.ORDINARY_DE, "rule") <= 0.02


@pytest.mark.parametrize("templates", [wordings.VALUES_EN, wordings.VALUES_DE])
def test_planted_values_are_recognized(templates: list[str]) -> None:
    messages = list(generate_messages(templates, seed=SEED, count=MESSAGES))
    found = [_holds(message, value) for message in messages for value in message.values]
    assert sum(found) >= 0.97 * len(found)


def _holds(message: PlantedMessage, value: str) -> bool:
    return any(value in line.text for line in recognize(message.text))
