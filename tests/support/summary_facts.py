"""What conversations say, and how true and untrue summaries say it, in two languages."""

import random
from dataclasses import dataclass
from typing import NamedTuple

from compaction.memory.core.verify.sources import Role

NAMES = ["Ada", "Tobias", "Miriam", "Oskar", "Leonie", "Quentin", "Yusuf", "Greta", "Ines", "Pavel"]
CITIES = ["Lisbon", "Porto", "Bergen", "Graz", "Turin", "Ghent", "Malmö", "Kraków"]
SYSTEMS = ["Redis", "PostgreSQL", "Kafka", "Nginx", "Grafana", "Terraform"]


@dataclass(frozen=True)
class Fact:
    """What one to three messages say, and how true summaries say it.

    `flip` is one of the true sentences with its meaning turned round.
    """

    messages: list[tuple[Role, str]]
    true: list[str]
    flip: str = ""
    exchange: str = ""


class _Details(NamedTuple):
    name: str
    city: str
    system: str
    budget: int
    day: int
    port: int
    ticket: str
    price: int
    nights: int


def _draw_details(rng: random.Random) -> _Details:
    return _Details(
        name=rng.choice(NAMES),
        city=rng.choice(CITIES),
        system=rng.choice(SYSTEMS),
        budget=rng.randrange(21, 98) * 100 + 50,
        day=rng.randint(3, 27),
        port=rng.randint(3100, 9800),
        ticket=f"OPS-{rng.randint(1000, 9999)}",
        price=rng.randint(61, 240),
        nights=rng.randint(3, 9),
    )


def list_facts(rng: random.Random, language: str) -> list[Fact]:
    """Draw the names and numbers of the conversation, and return its facts."""
    return _list_english_facts(rng) if language == "en" else _list_german_facts(rng)


def _list_english_facts(rng: random.Random) -> list[Fact]:
    name, city, system, budget, day, port, ticket, price, nights = _draw_details(rng)
    return [
        Fact(
            [
                (
                    "user",
                    f"Hey, I'm {name}. We want to spend {nights} nights in {city}, and all in all "
                    f"it must stay under {budget:,} euros.",
                ),
                (
                    "assistant",
                    f"Nice to meet you, {name}! {city} it is. I will keep that limit in mind.",
                ),
            ],
            [
                f"{name} plans {nights} nights in {city} and wants to stay under {budget:,} euros.",
                f"The user, {name}, has a limit of €{budget} for {nights} nights in {city}.",
            ],
            f"{name} does not plan {nights} nights in {city}.",
        ),
        Fact(
            [
                (
                    "user",
                    "By the way, I can't stand early flights, so never book anything that leaves "
                    "before nine in the morning.",
                ),
                ("assistant", "Noted: nothing before nine."),
            ],
            [
                "Flights before nine in the morning must never be booked.",
                "The user never wants a flight that leaves before nine in the morning.",
            ],
            "The user wants to book flights that leave before nine in the morning.",
        ),
        Fact(
            [
                (
                    "user",
                    f"The production database runs {system} on port {port}. Don't restart it "
                    f"without "
                    "asking the on-call team.",
                ),
                ("assistant", f"Understood, I won't restart {system} without their approval."),
            ],
            [
                f"Production uses {system} on port {port}; restarting it without asking "
                f"on-call is not "
                "allowed.",
                f"{system} (production) listens on port {port} and must not be restarted "
                f"without asking "
                "the on-call team.",
            ],
            f"{system} on port {port} may be restarted, asking the on-call team is not needed.",
        ),
        Fact(
            [
                (
                    "user",
                    f"Please open a ticket for the login bug, and send it to {name} by "
                    f"2026-0{rng.randint(3, 9)}-{day:02d}.",
                ),
                ("assistant", f"I opened {ticket} for the login bug."),
            ],
            [
                f"The assistant opened {ticket} for the login bug.",
                f"A ticket ({ticket}) was opened for the login bug; it goes to {name}.",
            ],
            f"The assistant did not open {ticket} for the login bug.",
            f"The user opened {ticket} for the login bug.",
        ),
        Fact(
            [
                (
                    "assistant",
                    f"I compared three hotels: Casa Azul at {price} euros, Pensao Nova at "
                    f"{price + 37} and the Grand at {price + 180}.",
                ),
                ("user", "Casa Azul sounds good, let's take that one."),
            ],
            [
                f"Of three hotels the user chose Casa Azul for {price} euros.",
                f"The assistant compared three hotels; Casa Azul ({price} euros) was chosen.",
            ],
            "The user did not take Casa Azul, which sounds good.",
            f"The user compared three hotels at {price}, {price + 37} and {price + 180} euros.",
        ),
        Fact(
            [
                ("user", "I am allergic to peanuts, and my sister is vegetarian."),
                ("assistant", "I will look for restaurants that suit you both."),
            ],
            [
                "The user is allergic to peanuts; the user's sister is vegetarian.",
                "The user has a peanut allergy and a vegetarian sister.",
            ],
            "The user's sister is not vegetarian.",
            "The assistant is allergic to peanuts and has a vegetarian sister.",
        ),
        Fact(
            [
                ("user", "Do the reports have to be encrypted?"),
                (
                    "assistant",
                    "Yes. The contract says that all quarterly reports are encrypted at rest "
                    f"with a key of {rng.choice([256, 384, 512])} bits.",
                ),
            ],
            [
                "According to the contract all quarterly reports are encrypted at rest.",
                "The assistant said that the contract requires quarterly reports to be "
                "encrypted at rest.",
            ],
            "The contract says that the quarterly reports are not encrypted at rest.",
        ),
        Fact(
            [
                (
                    "user",
                    f"The config lives in /srv/app{rng.randint(2, 9)}/settings.toml, and the retry "
                    f"limit there is {rng.randint(13, 60)} seconds.",
                ),
                ("assistant", "Thanks, I found the file and read the limit."),
            ],
            [
                "The retry limit stands in settings.toml.",
                "The user named the config file with the retry limit.",
            ],
            exchange="The user found the file and read the limit; the assistant named it.",
        ),
    ]


def _list_german_facts(rng: random.Random) -> list[Fact]:
    name, city, system, budget, day, port, ticket, price, nights = _draw_details(rng)
    grouped = f"{budget:,}".replace(",", ".")
    return [
        Fact(
            [
                (
                    "user",
                    f"Hallo, ich bin {name}. Wir möchten {nights} Nächte in {city} bleiben, "
                    f"und alles "
                    f"zusammen muss unter {grouped} Euro bleiben.",
                ),
                ("assistant", f"Freut mich, {name}! Ich behalte die Grenze im Blick."),
            ],
            [
                f"{name} plant {nights} Nächte in {city} und will unter {grouped} Euro bleiben.",
                f"Das Budget für {nights} Nächte in {city} liegt unter {budget} €.",
            ],
            f"Die {nights} Nächte in {city} müssen nicht unter {grouped} Euro bleiben.",
        ),
        Fact(
            [
                (
                    "user",
                    "Frühe Flüge ertrage ich nicht, also buche niemals etwas, das vor neun Uhr "
                    "morgens startet.",
                ),
                ("assistant", "Ist notiert, nichts vor neun."),
            ],
            [
                "Flüge, die vor neun Uhr morgens starten, dürfen niemals gebucht werden.",
                "Der Nutzer möchte niemals einen Flug, der vor neun Uhr morgens startet.",
            ],
            "Der Nutzer möchte Flüge buchen, die vor neun Uhr morgens starten.",
        ),
        Fact(
            [
                (
                    "user",
                    f"Die Produktion läuft mit {system} auf Port {port}. Starte den Server "
                    f"nicht neu, "
                    "ohne die Bereitschaft zu fragen.",
                ),
                ("assistant", f"Verstanden, ich starte {system} nicht ohne Freigabe neu."),
            ],
            [
                f"Die Produktion nutzt {system} auf Port {port}; ein Neustart ohne Rückfrage "
                f"ist verboten.",
                f"{system} läuft in der Produktion auf Port {port} und darf nicht ohne "
                f"Rückfrage neu "
                "gestartet werden.",
            ],
            f"Die Produktion läuft nicht mit {system} auf Port {port}.",
        ),
        Fact(
            [
                (
                    "user",
                    f"Leg bitte ein Ticket für den Fehler beim Anmelden an und schick es "
                    f"{name} bis "
                    f"zum {day}.{rng.randint(1, 9)}.2026.",
                ),
                ("assistant", f"Ich habe {ticket} für den Fehler beim Anmelden angelegt."),
            ],
            [
                f"Der Assistent hat {ticket} für den Fehler beim Anmelden angelegt.",
                f"Für den Anmeldefehler gibt es das Ticket {ticket}; es geht an {name}.",
            ],
            f"Der Assistent hat {ticket} für den Fehler beim Anmelden nicht angelegt.",
            f"Der Nutzer hat {ticket} für den Fehler beim Anmelden angelegt.",
        ),
        Fact(
            [
                (
                    "assistant",
                    f"Ich habe drei Hotels verglichen: Casa Azul für {price} Euro, Pensao Nova "
                    f"für {price + 37} und das Grand für {price + 180}.",
                ),
                ("user", "Casa Azul klingt gut, das nehmen wir."),
            ],
            [
                f"Von drei Hotels wählte der Nutzer Casa Azul für {price} Euro.",
                f"Der Assistent verglich drei Hotels; gewählt wurde Casa Azul ({price} Euro).",
            ],
            "Casa Azul klingt nicht gut und wird nicht genommen.",
            f"Der Nutzer hat drei Hotels verglichen: Casa Azul, Pensao Nova und das Grand für "
            f"{price + 180} Euro.",
        ),
        Fact(
            [
                (
                    "user",
                    "Ich bin allergisch gegen Erdnüsse, und meine Schwester ist Vegetarierin.",
                ),
                ("assistant", "Ich suche Restaurants, die für euch beide passen."),
            ],
            ["Der Nutzer ist allergisch gegen Erdnüsse, seine Schwester ist Vegetarierin."],
            "Die Schwester ist keine Vegetarierin, und Erdnüsse sind kein Problem.",
            "Der Assistent ist allergisch gegen Erdnüsse, seine Schwester ist Vegetarierin.",
        ),
        Fact(
            [
                ("user", "Müssen die Berichte verschlüsselt werden?"),
                (
                    "assistant",
                    "Ja. Laut Vertrag werden alle Quartalsberichte verschlüsselt gespeichert.",
                ),
            ],
            [
                "Laut Vertrag werden alle Quartalsberichte verschlüsselt gespeichert.",
                "Der Assistent sagte, dass Quartalsberichte laut Vertrag verschlüsselt "
                "gespeichert werden.",
            ],
            "Laut Vertrag werden die Quartalsberichte nicht verschlüsselt gespeichert.",
        ),
    ]
