"""Make exact values as people write them: identifiers, sums, dates, paths and more."""

import random
from collections.abc import Callable

SYLLABLES = "ba do fen gri hal jo ku lim mor nak ost per qui rud sel tor ul vas wim yar zet"
MONTHS = {
    "en": "January February March April May June July August September October November December",
    "de": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
}


def make_word(rng: random.Random) -> str:
    """Return a word of no language."""
    return "".join(rng.choice(SYLLABLES.split()) for _ in range(rng.randint(2, 3)))


def make_answer(kind: str, rng: random.Random, language: str, units: tuple[str, ...] = ()) -> str:
    """Return a random value of a kind, in the spelling of a language."""
    if kind == "number":
        return f"{_format_number(rng.randint(12, 9_800), language)} {rng.choice(units)}"
    return _MAKERS[kind](rng, language)


def _format_number(number: int, language: str) -> str:
    text = f"{number:,}"
    return text if language == "en" else text.replace(",", ".")


def _make_id(rng: random.Random, language: str) -> str:
    letters = "".join(rng.choice("ABCDEFGHKLMNPRSTUVWXYZ") for _ in range(rng.randint(2, 3)))
    digits = str(rng.randint(1_000, 99_999))
    forms = (
        f"{letters}-{digits}",
        f"{letters}/{digits[:3]}-{rng.choice('abcdef')}",
        f"{rng.randint(100, 999)}-{rng.randint(10, 99)}-{digits}",
        f"{rng.randint(2, 9)} {letters[0]} {rng.randint(10, 999)}/{rng.randint(20, 27)}",
        f"{rng.randrange(16**7):07x}",
        digits + str(rng.randint(10, 99)),
    )
    return rng.choice(forms)


def _make_path(rng: random.Random, language: str) -> str:
    first, second = make_word(rng), make_word(rng)
    forms = (
        f"/srv/{first}/{second}_{rng.randint(1, 99)}",
        f"D:\\{first.capitalize()}\\{second}",
        f"~/{first}/{second}.d",
        f"/mnt/{first}-{rng.randint(1, 9)}/{second}/current",
        f"s3://{first}-{second}/in",
    )
    return rng.choice(forms)


def _make_version(rng: random.Random, language: str) -> str:
    numbers = f"{rng.randint(1, 19)}.{rng.randint(0, 30)}.{rng.randint(0, 40)}"
    return rng.choice((numbers, f"v{numbers}", f"{numbers}-rc{rng.randint(1, 5)}"))


def _make_sum(rng: random.Random, language: str) -> str:
    whole, cents = rng.randint(31, 48_000), rng.randint(1, 99)
    text = _format_number(whole, language)
    if language == "de":
        return rng.choice((f"{text},{cents:02} €", f"{text} Euro", f"{text},{cents:02} EUR"))
    return rng.choice((f"€{text}.{cents:02}", f"${text}", f"{text}.{cents:02} euros", f"£{text}"))


def _make_date(rng: random.Random, language: str) -> str:
    day, month, year = rng.randint(1, 28), rng.randint(1, 12), rng.randint(2026, 2029)
    name = MONTHS[language].split()[month - 1]
    if language == "de":
        return rng.choice(
            (f"{day}. {name} {year}", f"{day:02}.{month:02}.{year}", f"{day}. {name}")
        )
    forms = (f"{day} {name} {year}", f"{name} {day}", f"{year}-{month:02}-{day:02}")
    return rng.choice(forms)


def _make_time(rng: random.Random, language: str) -> str:
    hour, minute = rng.randint(5, 21), rng.randint(1, 59)
    if language == "de":
        return rng.choice((f"{hour}:{minute:02} Uhr", f"{hour}.{minute:02} Uhr"))
    return rng.choice(
        (f"{hour}:{minute:02}", f"{(hour - 1) % 12 + 1}:{minute:02} {_name_half(hour)}")
    )


def _name_half(hour: int) -> str:
    return "pm" if hour >= 12 else "am"


def _make_dose(rng: random.Random, language: str) -> str:
    amount = f"{rng.randint(1, 90)}.{rng.choice((25, 5, 75))}"
    if language == "de":
        amount = amount.replace(".", ",")
    return f"{amount} {rng.choice(('mg', 'µg', 'ml'))}"


def _make_percent(rng: random.Random, language: str) -> str:
    text = f"{rng.randint(1, 38)}.{rng.randint(1, 99):02}"
    return f"{text.replace('.', ',')} %" if language == "de" else f"{text}%"


def _make_phone(rng: random.Random, language: str) -> str:
    tail = f"{rng.randint(100, 999)} {rng.randint(1_000, 9_999)}"
    return rng.choice((f"+43 1 {tail}", f"0{rng.randint(150, 179)} {tail}", f"+44 20 {tail}"))


def _make_url(rng: random.Random, language: str) -> str:
    return f"https://{make_word(rng)}.example/{make_word(rng)}/{rng.randint(10, 9_999)}"


_MAKERS: dict[str, Callable[[random.Random, str], str]] = {
    "id": _make_id,
    "path": _make_path,
    "version": _make_version,
    "sum": _make_sum,
    "date": _make_date,
    "time": _make_time,
    "dose": _make_dose,
    "percent": _make_percent,
    "phone": _make_phone,
    "url": _make_url,
}
