"""Say what an answer looks like: "When …?" asks for a date, and "How much …?" for a number.

The patterns are those of English and German questions and values, in the form of `fold_case`. A
message with something of that kind beside the question's words ranks higher (ranking.py); none is
left out for want of it.
"""

import re
from collections.abc import Sequence

from textkit.calendar import MONTHS, WEEKDAY_NAMES
from textkit.stems import fold_case

_MONTHS = "|".join(map(fold_case, MONTHS))
_DAYS = (
    f"{'|'.join(WEEKDAY_NAMES)}|today|tomorrow|yesterday|tonight|heute|morgen|ubermorgen|gestern"
)
_PERIODS = (
    r"(?:last|next|this|past|previous|nachste[nrs]?|letzte[nrs]?|kommende[nrs]?|diese[nrs]?) "
    r"(?:day|week|weekend|month|year|spring|summer|fall|autumn|winter|night|morning|"
    r"woche|wochenende|monat|jahr)|\bago\b"
)
_DATE = (
    rf"\b\d{{4}}-\d\d?-\d\d?\b|\b\d\d?\.\d\d?\.(?:\d{{2,4}})?|\b\d\d?/\d\d?(?:/\d{{2,4}})?\b|"
    rf"\b(?:{_MONTHS})\b\.? \d|\b\d\d?(?:st|nd|rd|th|\.)? (?:of )?(?:{_MONTHS})\b|"
    rf"\b(?:{_DAYS})\b|{_PERIODS}|\b(?:19|20)\d\d\b"
)
_TIME = (
    r"\b\d\d?[:.]\d\d\b|\b\d\d? ?(?:am|pm|uhr|o'clock)\b|\b(?:noon|midnight|mittag|mitternacht)\b"
)
_MONEY = (
    r"[$€£¥] ?\d|\d ?[$€£¥]|\d ?(?:euros?|eur|dollars?|usd|bucks|pounds?|gbp|chf|franken|cents?)\b"
)
_NUMBER = (
    r"\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|million|once|"
    r"twice|zwei|drei|vier|funf|sechs|sieben|acht|neun|zehn|hundert|tausend|million(?:en)?)\b"
)
_PERCENT = r"\d ?(?:%|percent|prozent)"
_CODE = r"\b(?=[-/\w]{0,60}\d)(?:[a-z]+[-/ ]?\d[\w/-]*|\d[\w/-]{4,}|\d+[-/ ]?[a-z][\w/-]*)"
_PHONE = r"\+?\d[\d /()-]{5,}\d"
_ADDRESS = (
    r"https?://|\bwww\.|(?<![\w.-])[\w.-]++@\w"
    r"|(?:^|[\s\"'`(])(?:~|[a-z]:)?[\\/][\w.\\/-]|\b\w++://\w"
)
_VERSION = r"\bv?\d+\.\d+"

# What a question asks with, and what its answer may look like; the first that fits counts.
_KINDS: Sequence[tuple[str, str]] = (
    (
        r"\b(?:(?:at )?(?:what|which) (?:time|hour)|how (?:early|late)|um wie ?viel uhr|"
        r"welche uhrzeit|wie (?:fruh|spat))\b",
        _TIME,
    ),
    (
        r"\b(?:when|(?:what|which) (?:day|date|month|year)|deadline|due date|how long ago|wann|"
        r"welche[mnrs]? (?:tag|datum|monat|jahr|frist)|stichtag)\b",
        f"{_DATE}|{_TIME}",
    ),
    (
        r"\b(?:phone|telephone|(?:call|reach|ring) |telefon\w*|anruf\w*|anrufen|rufnummer)\b",
        _PHONE,
    ),
    (r"\b(?:percent(?:age)?|(?:what|which) (?:\w+ )?rate|prozent\w*|prozentsatz)\b", _PERCENT),
    (
        r"\b(?:how (?:much|expensive)\b.{0,100}\b(?:pay|paid|paying|charge|spend|owe|worth)|price|"
        r"costs?|fee|budget|sum|amount|wie teuer|kosten|kostet|preis|betrag|summe|gebuhr|honorar|"
        r"wie hoch)\b",
        f"{_MONEY}|{_PERCENT}",
    ),
    (r"\b(?:version|release number|fassung)\b", _VERSION),
    (
        r"\b(?:url|link|web(?:site| page)|path|folder|directory|file (?:is|are|stored)|pfad|ordner|"
        r"verzeichnis|adresse|webseite)\b",
        _ADDRESS,
    ),
    (
        r"\b(?:code|reference|identifier|id|ticket|serial|account number|booking number|"
        r"(?:order|invoice|file|case|docket|tracking|confirmation|policy) (?:number|no|id)|kennung|"
        r"aktenzeichen|nummer|zeichen|buchungscode)\b",
        _CODE,
    ),
    (
        r"\b(?:how (?:much|many|long|far|old|often|big|large|high|tall|heavy|wide|deep)|number of|"
        r"quantity|dose|dosage|wie ?viele?|wie (?:lange?|weit|alt|oft|gross|hoch|schwer)|menge|"
        r"dosis|anzahl)\b",
        _NUMBER,
    ),
)
_PATTERNS = tuple((re.compile(question), re.compile(answer)) for question, answer in _KINDS)


def find_answer_pattern(folded_question: str) -> re.Pattern[str] | None:
    """Return the pattern of what a folded question asks for; None if it asks for anything else."""
    for question_pattern, answer_pattern in _PATTERNS:
        if question_pattern.search(folded_question):
            return answer_pattern
    return None
