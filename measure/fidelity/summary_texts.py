"""True summaries in several styles, made from the facts and not from their sentences."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from measure.fidelity.answers import MONTHS
from measure.fidelity.facts import Fact

LABELS = {
    "en": {
        "id": "reference",
        "path": "folder",
        "version": "version",
        "number": "figure",
        "sum": "amount",
        "date": "date",
        "time": "time",
        "dose": "dose",
        "percent": "rate",
        "phone": "phone number",
        "url": "link",
        "word": "choice",
    },
    "de": {
        "id": "Kennung",
        "path": "Ordner",
        "version": "Version",
        "number": "Wert",
        "sum": "Betrag",
        "date": "Datum",
        "time": "Uhrzeit",
        "dose": "Dosis",
        "percent": "Satz",
        "phone": "Telefonnummer",
        "url": "Adresse im Netz",
        "word": "Wahl",
    },
}


@dataclass(frozen=True)
class Phrases:
    """How a summary in a language says things."""

    opening: str
    stated: str  # of a value
    rule: str
    negation: str
    count: str
    rules_heading: str
    facts_heading: str


PHRASES = {
    "en": Phrases(
        opening="The user and the assistant went through several open points.",
        stated="For {subject}, the {label} is {answer}.",
        rule="The user asked for this: {core}.",
        negation="According to the user, {core}.",
        count="In all, {count} points were settled.",
        rules_heading="## Rules of the user",
        facts_heading="## Facts",
    ),
    "de": Phrases(
        opening="Es wurden mehrere offene Punkte besprochen.",
        stated="Bei {subject} gilt als {label}: {answer}.",
        rule="Gewünscht ist: {core}.",
        negation="Laut Nutzer gilt: {core}.",
        count="Insgesamt wurden {count} Punkte geklärt.",
        rules_heading="## Regeln",
        facts_heading="## Fakten",
    ),
}
NUMBER_WORDS = {
    "en": "no one two three four five six seven eight nine ten eleven twelve",
    "de": "keine eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf",
}


def state_fact(fact: Fact, answer: str | None = None) -> str:
    """Return a sentence that states a fact, perhaps with its answer in other words."""
    phrases = PHRASES[fact.language]
    text = answer or fact.answer
    if fact.subject is None:
        return (phrases.rule if fact.kind == "rule" else phrases.negation).format(core=text)
    label = LABELS[fact.language][fact.kind]
    return phrases.stated.format(subject=fact.subject.name, label=label, answer=text)


def _write_prose(facts: Sequence[Fact]) -> str:
    return " ".join([PHRASES[facts[0].language].opening, *map(state_fact, facts)])


def _write_bullets(facts: Sequence[Fact]) -> str:
    return "\n".join(f"- {state_fact(fact)}" for fact in facts)


def _write_headings(facts: Sequence[Fact]) -> str:
    phrases = PHRASES[facts[0].language]
    rules = [f"- {fact.answer}" for fact in facts if fact.kind == "rule"]
    others = [f"- {state_fact(fact)}" for fact in facts if fact.kind != "rule"]
    return "\n".join([phrases.rules_heading, *rules, "", phrases.facts_heading, *others])


def _write_extract(facts: Sequence[Fact]) -> str:
    return "\n".join(fact.sentence for fact in facts)


def _write_telegram(facts: Sequence[Fact]) -> str:
    parts = [
        f"{fact.subject.name}: {fact.answer}" if fact.subject else fact.answer for fact in facts
    ]
    return "; ".join(parts) + "."


def _write_counts(facts: Sequence[Fact]) -> str:
    language = facts[0].language
    count = PHRASES[language].count.format(
        count=NUMBER_WORDS[language].split()[min(12, len(facts))]
    )
    return f"{_write_prose(facts)} {count}"


def _write_other_formats(facts: Sequence[Fact]) -> str:
    sentences = [state_fact(fact, change_format(fact)) for fact in facts]
    return " ".join([PHRASES[facts[0].language].opening, *sentences])


STYLES: dict[str, Callable[[Sequence[Fact]], str]] = {
    "prose": _write_prose,
    "bullets": _write_bullets,
    "headings": _write_headings,
    "extract": _write_extract,
    "telegram": _write_telegram,
    "counts": _write_counts,
    "other formats": _write_other_formats,
}


def change_format(fact: Fact) -> str:
    """Return the same answer in another spelling, as summaries have it."""
    answer = fact.answer
    separator = "," if fact.language == "en" else "."
    if fact.kind in ("sum", "number"):
        return re.sub(rf"(?<=\d)\{separator}(?=\d{{3}})", "", answer)
    if fact.kind == "date":
        return _change_date(answer, fact.language)
    if fact.kind == "percent":
        return answer.replace(" ", "").replace(
            "%", " percent" if fact.language == "en" else " Prozent"
        )
    return answer


def _change_date(answer: str, language: str) -> str:
    names = MONTHS[language].split()
    if match := re.fullmatch(r"(\d+)\.? (\w+) (\d{4})", answer):
        return f"{match[3]}-{names.index(match[2]) + 1:02}-{int(match[1]):02}"
    if match := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", answer):
        return f"{int(match[3])} {names[int(match[2]) - 1]} {match[1]}"
    return answer


def choose_changed_digit(answer: str, rng: random.Random) -> str:
    """Return an answer with one of its digits changed."""
    places = [place for place, char in enumerate(answer) if char.isdigit()]
    place = rng.choice(places[1:] or places)
    digit = rng.choice([digit for digit in "123456789" if digit != answer[place]])
    return answer[:place] + digit + answer[place + 1 :]
