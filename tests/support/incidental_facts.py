"""Generate chats in which facts are mentioned in passing, and ask for them in other words."""

import random
from typing import NamedTuple

# What somebody mentions in passing, and how it is asked for later. `{}` is the value.
FACTS = (
    (
        "Sorry for the delay, I was picking up my sister at {} station.",
        "Where did I collect my sister?",
    ),
    (
        "My dentist moved, the practice is in {} now, so I need more time.",
        "In which place is the dentist's practice?",
    ),
    (
        "We painted the kitchen {} last weekend and my back still hurts.",
        "What colour did we paint our kitchen?",
    ),
    ("The landlord wants {} euros from January on.", "How much does the landlord charge?"),
    (
        "I named the sourdough starter {}, do not laugh.",
        "What name does my sourdough starter have?",
    ),
    ("Deploys happen on {} because Priya is on call then.", "On what day do we deploy?"),
    (
        "The staging password was rotated, the hint is {}.",
        "What is the hint of the staging password?",
    ),
    (
        "My bike has a flat tyre again, the shop in {} repairs it.",
        "Who repairs the flat tyre of my bike?",
    ),
    (
        "Our invoices go through {}, their support answers quickly.",
        "Which company handles the invoicing?",
    ),
    (
        "Before we begin: I cannot eat {}, so no recipes with it.",
        "Which food can't I eat in recipes?",
    ),
    (
        "Grandfather kept {} bees when he was young, I have his notes.",
        "How many bees did my grandfather keep?",
    ),
    (
        "The telescope's mirror is {} millimetres wide, if that matters.",
        "What is the width of the telescope mirror in millimetres?",
    ),
    (
        "We settled on {} as database; nobody wants to discuss it again.",
        "Which database did we settle for?",
    ),
    ("The marathon took me {} minutes, my slowest ever.", "How long did I need for the marathon?"),
    ("Übrigens ist unser Kater {} seit gestern wieder zu Hause.", "Wie heißt unser Kater?"),
    (
        "Die Werkstatt hat für die Bremsen {} Euro verlangt, ein Wahnsinn.",
        "Was haben die Bremsen in der Werkstatt gekostet?",
    ),
    (
        "Der Mietvertrag läuft noch bis {}, bis dahin bleibt alles so.",
        "Wie lange läuft mein Mietvertrag?",
    ),
    (
        "Meine Krankenversicherungskarte liegt bei {}, falls du sie suchst.",
        "Wo liegt die Versicherungskarte?",
    ),
)
# A question, and the answer of the next message, which has none of its words.
EXCHANGES = (
    ("By the way, what was the code of the garage again?", "It is {}, since Tuesday."),
    ("Who is going to water the tomatoes in August?", "{} said yes this morning."),
)
VALUES = [
    "Oslo",
    "Minka",
    "Lentos",
    "Quarz",
    "Havel",
    "Bruno",
    "Tamsin",
    "Zephyr",
    "Kobalt",
    "Linz",
    "Porto",
    "Salbei",
]
TOPICS = [
    "sister",
    "kitchen",
    "recipe",
    "station",
    "weekend",
    "landlord",
    "bike",
    "tyre",
    "telescope",
    "marathon",
    "database",
    "password",
    "invoice",
    "dentist",
    "garden",
    "tomatoes",
    "garage",
    "Kater",
    "Werkstatt",
    "Bremsen",
    "Miete",
    "Karte",
]
SMALL_TALK = (
    "Could you explain again how the {} and the {} fit together?",
    "I thought about the {} today, and then about the {}; nothing came of it.",
    "Thanks, that helps. Next comes the {}, the {} can wait.",
    "Here is a list: the {}, the weather, the {}, and something for the evening.",
    "Let us return to the report: chapter four still lacks a sentence about the {}.",
    "Das mit der {} verstehe ich, aber nicht das mit dem {}.",
    "Sure. A {} is usually chosen by its price, and a {} by its weight.",
)


class Fact(NamedTuple):
    """What was asked for, and the value that the answer holds."""

    question: str
    value: str


def write_chat(seed: int, message_count: int = 400) -> tuple[list[str], list[Fact]]:
    """Return the texts of a chat, and the facts that are mentioned in it, each once."""
    dice = random.Random(seed)
    texts = [_write_small_talk(dice) for _ in range(message_count)]
    facts = []
    statements: list[tuple[tuple[str, ...], str]] = [
        ((statement,), question) for statement, question in FACTS
    ]
    statements += [((question, answer), question) for question, answer in EXCHANGES]
    places = dice.sample(range(0, message_count, 4), len(statements))
    for place, (wordings, question) in zip(places, statements, strict=True):
        value = f"{dice.choice(VALUES)}{dice.randint(10, 99)}"
        for offset, wording in enumerate(wordings):
            texts[place + offset] = wording.format(value)
        facts.append(Fact(question, value))
    return texts, facts


def _write_small_talk(dice: random.Random) -> str:
    sentences = dice.choices(SMALL_TALK, k=dice.randint(1, 4))
    return " ".join(
        sentence.format(dice.choice(TOPICS), dice.choice(TOPICS)) for sentence in sentences
    )
