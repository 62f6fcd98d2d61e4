"""Messages in which a rule or a value is planted, from a seed, and how many are recognized."""

import random
import string
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.support import ledger_wordings as wordings


@dataclass(frozen=True)
class PlantedMessage:
    """A message, the sentence that was planted in it, and the values of that sentence."""

    text: str
    sentence: str
    values: tuple[str, ...]
    template: str


def generate_messages(templates: list[str], *, seed: int, count: int) -> Iterator[PlantedMessage]:
    """Yield messages of one to five sentences, of which one is made from a template."""
    source = random.Random(seed)
    for _ in range(count):
        template = source.choice(templates)
        sentence, values = fill_template(template, source)
        fillers = source.sample(wordings.FILLERS, source.randint(0, 4))
        place = source.randint(0, len(fillers))
        before, after = fillers[:place], fillers[place:]
        planted_text = sentence
        if after and sentence[-1] not in ".!?":
            planted_text += "\n"
        text = " ".join([*before, planted_text, *after])
        if before and sentence[0].islower():
            text = "\n".join([" ".join(before), " ".join([planted_text, *after])])
        yield PlantedMessage(text=text, sentence=sentence, values=values, template=template)


def fill_template(template: str, source: random.Random) -> tuple[str, tuple[str, ...]]:
    """Return the sentence of a template, and the exact values in it."""
    parts = []
    values = []
    for literal, field, _, _ in string.Formatter().parse(template):
        parts.append(literal)
        if field is None:
            continue
        word = _choose_word(field, source)
        if field in _GENERATORS or field in {"name", "branch", "env"}:
            values.append(word)
        parts.append(word)
    sentence = "".join(parts)
    return sentence, tuple(values)


def _choose_word(field: str, source: random.Random) -> str:
    if field in _GENERATORS:
        return _GENERATORS[field](source)
    if field.endswith("_cap"):
        word = source.choice(wordings.VOCABULARY[field.removesuffix("_cap")])
        return word[0].upper() + word[1:]
    return source.choice(wordings.VOCABULARY[field])


def _make_id(source: random.Random) -> str:
    return source.choice(
        [
            f"INV-{source.randint(2020, 2029)}-{source.randint(100, 999)}",
            f"{source.choice('ABKX')}{source.randint(10000, 99999)}",
            f"#{source.randint(1000, 99999)}",
            f"{source.randint(100000, 999999)}",
            f"PO {source.randint(1000, 9999)}",
            f"{source.choice('QRT')}{source.randint(1, 9)}-XQ{source.randint(10, 99)}",
        ]
    )


def _make_amount(source: random.Random) -> str:
    number = source.randint(3, 9_999)
    return source.choice(
        [f"${number:,}", f"€{number}.50", f"{number} dollars", f"{number:,} EUR", f"£{number}k",
         f"USD {number}", f"{number}.99 euros"]
    )  # fmt: skip


def _make_amount_de(source: random.Random) -> str:
    number = source.randint(3, 9_999)
    text = f"{number:,}".replace(",", ".")
    return source.choice([f"{text} €", f"{text},50 Euro", f"{number} CHF", f"EUR {text}"])


def _make_date(source: random.Random) -> str:
    day, month = source.randint(1, 28), source.choice(wordings.VOCABULARY["month"])
    return source.choice(
        [f"{month} {day}", f"{day} {month}", f"2026-{source.randint(10, 12)}-{day:02}",
         f"{month} {day}, 2026", f"the {day}th of {month}", f"{source.randint(1, 12)}/{day}/2026"]
    )  # fmt: skip


def _make_date_de(source: random.Random) -> str:
    day, month = source.randint(1, 28), source.choice(wordings.VOCABULARY["month_de"])
    return source.choice(
        [f"{day}. {month}", f"{day}.{source.randint(1, 12)}.2026", f"{day}. {month} 2026"]
    )


def _make_time(source: random.Random) -> str:
    hour, minute = source.randint(1, 12), source.choice([0, 15, 30, 45])
    return source.choice(
        [f"{hour}:{minute:02}", f"{hour} pm", f"{hour}:{minute:02} a.m.", f"{hour}am"]
    )


def _make_quantity(source: random.Random) -> str:
    number = source.randint(2, 900)
    return f"{number} " + source.choice(["minutes", "GB", "mg", "ms", "people", "kg", "requests"])


def _make_quantity_de(source: random.Random) -> str:
    number = source.randint(2, 900)
    return f"{number} " + source.choice(
        ["Minuten", "mg", "Quadratmeter", "Liter", "kg", "Personen"]
    )


def _make_iban(source: random.Random) -> str:
    return (
        f"DE{source.randint(10, 99)} "
        + " ".join(str(source.randint(1000, 9999)) for _ in range(4))
        + " 00"
    )


_GENERATORS: dict[str, Callable[[random.Random], str]] = {
    "number": lambda source: str(
        source.choice([source.randint(3, 99), source.randint(1000, 65000)])
    ),
    "number2": lambda source: str(source.randint(100, 9999)),
    "quantity": _make_quantity,
    "quantity_de": _make_quantity_de,
    "amount": _make_amount,
    "amount_de": _make_amount_de,
    "id": _make_id,
    "date": _make_date,
    "date_de": _make_date_de,
    "time": _make_time,
    "time_de": lambda source: f"{source.randint(7, 22)}:{source.choice(['00', '15', '30'])} Uhr",
    "email": lambda source: f"d.roy_{source.randint(1, 99)}@mail.example",
    "path": lambda source: source.choice(
        [f"/srv/data{source.randint(1, 9)}/exports", "~/notes/2026", "src/app/main.py",
         f"C:\\Work\\q{source.randint(1, 4)}", "config.yaml", "docs/plan_b.md"]
    ),
    "url": lambda source: f"https://wiki.example.org/p/{source.randint(10, 999)}?v=2",
    "version": lambda source: f"{source.randint(1, 9)}.{source.randint(0, 30)}.1",
    "hash": lambda source: f"{source.getrandbits(28) | 0xa0000000:08x}"[:7] + "f",
    "percent": lambda source: f"{source.randint(1, 99)}" + source.choice(["%", ".5 %", " percent"]),
    "phone": lambda source: f"+49 30 {source.randint(100000, 9999999)}",
    "flight": lambda source: f"LH {source.randint(100, 2999)}",
    "host": lambda source: f"db{source.randint(1, 20)}.prod.internal",
    "password": lambda source: source.choice(["Tr4msol!", "blue-Heron-77", "kaffee&Kuchen9"]),
    "iban": _make_iban,
    "street": lambda source: (
        f"{source.choice(['Lindenstraße', 'Oak Road', 'Harbor Lane'])} {source.randint(1, 180)}"
    ),
}  # fmt: skip
