"""Find the exact values of a sentence: numbers, dates, addresses and identifiers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from compaction.memory.core.ledger.languages import LANGUAGES
from textkit.calendar import MONTHS

SENTENCE_VALUES = 24  # a sentence with more is a row of data; the first are enough
CACHED_SENTENCES = 8_192  # those of a thousand messages, which are compared several times

Category = Literal["address", "date", "time", "number", "identifier"]

_MONTHS = "|".join(sorted(MONTHS, key=len, reverse=True))
_UNITS = "|".join(each.units for each in LANGUAGES)
_DAY = r"\d{1,2}(?:\.|st|nd|rd|th)?"
_NUMBER = r"\d{1,3}(?:[.,'’ \u202f\u00a0]\d{3}){1,5}(?:[.,]\d{1,4})?|\d{1,15}(?:[.,]\d{1,8})?"
_SCALE = r"(?: ?(?:k|m|bn|mio|mrd|thousand|million|billion|tausend|millionen|milliarden)\b\.?)?"
_CURRENCY_SIGN = r"[$€£¥₹]|(?:US|CA|AU)\$"
_CURRENCY = (
    r"[$€£¥₹]|(?:USD|EUR|CHF|GBP|JPY|CAD|AUD|SEK|NOK|DKK|PLN|CZK|euros?|dollars?|bucks|cents?"
    r"|franken|rappen|pfund|pence|quid|yen|kronen|złoty|rupees)\b"
)
_SIGNS = (
    r"%|°[CF]?|(?:[kMGT]i?B|[KMGT]bps|[kMG]bit/s|MB/s|[mµn]?s|[kmcµ]?m|[kmµ]?g|[km]?l|[kMG]?Hz|k?W"
    r"|kWh|[kMm]?V|m?A|mAh|px|pt|rem|em|km/h|mph|m²|m2|qm|sqm|sq ?ft|fps|dpi|rpm|bpm|cm|mm|ml|dl|cl"
    r"|hPa|bar|psi|dB|ppm|h|min|kcal|cal|oz|lb|ft|x|GB|MB|KB|TB|tps|qps|rps|req/s|pp|bps)\b"
)
_EXTENSIONS = (
    r"py|js|ts|tsx|jsx|go|rs|java|kt|rb|php|c|h|cpp|hpp|cs|swift|sh|sql|html|css|scss|json|ya?ml"
    r"|toml|ini|cfg|conf|env|lock|md|rst|txt|csv|tsv|xlsx?|docx?|pptx?|pdf|png|jpe?g|gif|svg|webp"
    r"|mp[34]|mov|wav|zip|gz|tgz|tar|log|xml|parquet|ipynb|pem|key|crt|db|sqlite3?|odt|ods|epub"
)
_TOP_LEVELS = (
    r"com|org|net|io|dev|de|ai|co|eu|uk|ch|at|fr|nl|us|app|edu|gov|info|biz|me|cloud|internal"
    r"|local|lan|corp|test|example|localhost|tech|xyz|shop|it|es|pl|se"
)

_SIZE = rf"-?(?:{_NUMBER})(?: ?[-–x×] ?(?:{_NUMBER}))?"
_DATE_RANGE = r" ?(?:-|–|to|bis|and|und) ?"

# The order is that of precedence: the first form that matches at a place is taken. Every
# repetition is bounded, so that a hostile text costs no more than a long one.
_FORMS: tuple[tuple[str, str], ...] = (
    ("url", r"\b[a-zA-Z][a-zA-Z0-9+]{1,14}://[^\s<>\"'`()\[\]]{1,300}"),
    ("url", r"\bwww\.[^\s<>\"'`()]{3,300}"),
    ("email", r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,4}"),
    ("handle", r"(?<![\w.])@[\w.-]{2,39}"),
    ("path", r"(?<![\w/.])(?:~|\.{1,2})?/[\w.@+~*{}-]{1,80}(?:/[\w.@+~*{}-]{0,80}){0,20}"),
    ("path", r"\b[A-Za-z]:\\[^\s\"<>|]{1,200}"),
    ("path", r"\b[\w.-]{1,60}(?:/[\w.@-]{1,60}){2,20}/?"),
    ("path", rf"\b[\w.-]{{1,60}}(?:/[\w.-]{{1,60}}){{0,20}}\.(?:{_EXTENSIONS})\b"),
    ("path", r"\b[a-z]\w{0,30}/[\w.]{0,30}[-_\d][\w.-]{1,40}"),
    ("uuid", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    ("iban", r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}(?: ?[A-Z0-9]{1,3})?\b"),
    ("date", r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?\b"),
    ("date", r"\b\d{1,2}/\d{1,2}/\d{2,4}\b|\b\d{4}/\d{2}/\d{2}\b"),
    ("date", r"\b\d{1,2}\. ?\d{1,2}\.(?: ?(?:20|19)\d{2}\b|\d{2,4}\b|(?! ?\d))"),
    (
        "date",
        rf"\b{_DAY}(?:{_DATE_RANGE}{_DAY})? (?:of )?(?i:{_MONTHS})\b\.?(?:,? \d{{4}}\b)?",
    ),
    ("date", rf"\b(?i:{_MONTHS})\b\.? {_DAY}(?!\d)(?: ?[-–] ?\d{{1,2}}\b)?(?:,? \d{{4}}\b)?"),
    ("date", rf"\b(?i:{_MONTHS}) \d{{4}}\b|\bQ[1-4](?:[ /]\d{{4}})?\b|\bKW ?\d{{1,2}}\b"),
    (
        "time",
        r"\b\d{1,2}:\d{2}(?::\d{2})?(?: ?[-–] ?\d{1,2}:\d\d)?(?: ?(?i:[ap]\.m\.|[ap]m\b))?"
        r"(?: (?:Uhr|CET|CEST|UTC|GMT|E[SD]?T|P[SD]?T)\b)?",
    ),
    ("time", r"\b\d{1,2} ?(?i:[ap]\.m\.|[ap]m\b)|\b\d{1,2}(?:[.:]\d\d)? (?:Uhr|o'clock)\b"),
    ("time", r"\b\d{1,2}h\d{2}\b"),
    ("ip", r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5}|/\d{1,2})?\b"),
    ("phone", r"\+\d{1,3}(?:[ /().-]{1,2}\d{1,9}){1,6}|\+\d{8,15}\b|\b\d{3}-\d{3}-\d{4}\b"),
    ("phone", r"\b0\d{2,5}[ /-]\d{3,10}(?:[ -]\d{1,6}){0,3}|\(\d{3}\) \d{3}-\d{4}|\b555-\d{4}\b"),
    (
        "amount",
        rf"(?:{_CURRENCY_SIGN}|\b(?:USD|EUR|CHF|GBP|JPY|CAD|AUD) ) ?(?:{_NUMBER}){_SCALE}",
    ),
    ("amount", rf"(?<![\w.])(?:{_NUMBER}){_SCALE} ?(?i:{_CURRENCY})"),
    ("version", r"\bv\d{1,5}(?:\.\d{1,6}){0,3}(?:[-.]?(?:rc|beta|alpha|dev|post)\.?\d{0,4})?\b"),
    ("version", r"\b\d{1,5}(?:\.\d{1,6}){2,3}(?:[-.+]?(?:rc|beta|alpha|dev|post)[\w.]{0,10})?\b"),
    ("version", r"\b\d{1,3}\.\d{1,3}-?(?:rc|beta|alpha|dev|b|a)\.?\d{0,4}\b"),
    ("quantity", rf"(?<![\w.]){_SIZE}{_SCALE}[ -]?(?:{_SIGNS})"),
    ("measure", rf"(?<![\w.]){_SIZE}[ -](?i:{_UNITS})\b"),
    ("tag", r"(?<!\w)#\w[\w-]{0,40}"),
    (
        "host",
        rf"\b(?:[a-zA-Z0-9][\w-]{{0,62}}\.){{1,5}}(?:{_TOP_LEVELS})\b(?::\d{{1,5}})?"
        r"(?:/[^\s,;)]{0,200})?",
    ),
    ("code", r"\b\d{1,4} [A-Z]{1,4} \d{1,6}/\d{2,4}\b|\b\d{2,9}/\d{2,9}(?:/\d{1,9})?\b"),
    ("host", r"\blocalhost:\d{1,5}\b|\b[a-z][\w-]{1,62}:\d{2,5}\b"),
    (
        "code",
        r"\b(?=[A-Za-z.-]{0,40}[\d_])(?=[\d_.-]{0,40}[A-Za-z])\w[\w.-]{1,63}(?<![.-])",
    ),
    ("code", r"\b[A-Z]{2,12}(?:-[A-Z]{2,12}){1,5}\b"),
    ("plain", rf"(?<![\w.])-?(?:{_NUMBER})(?!\w)"),
)
_VALUE = re.compile(
    "|".join(f"(?P<{form}_{index}>{source})" for index, (form, source) in enumerate(_FORMS))
)
_HAS_VALUE = re.compile(r"[\d/@_\\#]|\w\.\w|[A-Z]-[A-Z]")
_QUOTATION = re.compile(
    r"`([^`\n]{1,120})`|[\"“„»]([^\"“”„«»\n]{1,60})[\"”“«]|(?<!\w)'([^'\n]{1,60})'(?!\w)"
)
# What looks like a value and is none: "2nd", "and/or", "e.g", "#1", and words after a full stop.
_ORDINARY = {
    "code": re.compile(r"\d{1,2}(?:st|nd|rd|th|x|d)|24/7|50/50|\d{1,2}/\d{1,2}"),
    "path": re.compile(r"[\w-]+/[a-z]+"),
    "host": re.compile(r"[a-z]{1,12}\.(?:it|me|us|at|be|no|so|de)"),
    "tag": re.compile(r"#\d{1,2}"),
}
_COUNT = re.compile(
    r" (?:options?|things?|questions?|ways?|steps?|examples?|sentences?|paragraphs?|ideas?|reasons?"
    r"|other|more|optionen|dinge|fragen|schritte|beispiele|sätze|absätze|ideen|gründe|weitere)\b"
)
_CATEGORIES: dict[str, Category] = {
    "url": "address",
    "email": "address",
    "handle": "address",
    "path": "address",
    "host": "address",
    "ip": "address",
    "phone": "address",
    "date": "date",
    "time": "time",
    "uuid": "identifier",
    "iban": "identifier",
    "tag": "identifier",
    "code": "identifier",
    "quoted": "identifier",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Value:
    """A value of a sentence, by its first and last place. `form` is what it looks like."""

    start: int
    end: int
    text: str
    form: str

    @property
    def category(self) -> Category:
        """What the value is a value of; amounts, versions and sizes are numbers."""
        return _CATEGORIES.get(self.form, "number")

    @property
    def is_digit(self) -> bool:
        """Whether it is one digit without a unit, which alone says little."""
        return self.form == "plain" and len(self.text) == 1


@lru_cache(maxsize=CACHED_SENTENCES)
def find_values(text: str) -> tuple[Value, ...]:
    """Return the exact values of a sentence in their order; none overlaps another."""
    values: list[Value] = []
    if _HAS_VALUE.search(text):
        for match in islice(_VALUE.finditer(text), SENTENCE_VALUES):
            form = str(match.lastgroup).split("_")[0]
            value = match.group().rstrip(".,;:!?")
            if value and not _is_ordinary(form, value, text[match.end() : match.end() + 14]):
                values.append(
                    Value(
                        start=match.start(), end=match.start() + len(value), text=value, form=form
                    )
                )
    return tuple(values)


def find_quoted(text: str) -> Iterator[Value]:
    """Yield what stands in backticks or quotation marks."""
    for match in _QUOTATION.finditer(text):
        yield Value(start=match.start(), end=match.end(), text=match.group(), form="quoted")


def _is_ordinary(form: str, value: str, following_text: str) -> bool:
    if form == "plain":
        return len(value) < 3 and bool(_COUNT.match(following_text))
    pattern = _ORDINARY.get(form)
    return pattern is not None and bool(pattern.fullmatch(value))
