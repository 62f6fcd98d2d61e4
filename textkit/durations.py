"""Find lengths of time in texts of many languages: "2 minutes and 5 s", "20 Sekunden", "30秒"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

# Regular expressions of the words for a unit, without case. Scripts without spaces come last.
_UNITS = {
    0.001: r"ms|msecs?|milli?s[eé][ck]\w*|milisegundos?|миллисекунд\w*|毫秒|ミリ秒|밀리초",
    1.0: r"s|secs?|s[eé]cond(?:s|es?|en|[oi])?|sek(?:und(?:en?|a|y|er|i|ę)?)?|segs?|segundos?"
    r"|secunde|sn|saniye|detik|giây|sekunti?a?|másodperc|vteřin[ay]?|с|сек(?:унд[аыу]?)?"
    r"|δευτερόλεπτα|ثاني[ةه]|ثوان[يٍ]?|שניות|सेकंड|วินาที|秒(?:钟|鐘|間)?|초",
    60.0: r"m|mins?|minut(?:es?|en|os?|[aiyęe]|er|ów|er)?|minuut|minuutti?a?|perc|dk|dakika|menit"
    r"|phút|мин(?:ут[аыу]?)?|λεπτά|دقيق[ةه]|دقائق|דקות|मिनट|นาที|分(?:钟|鐘|間)|分(?![a-z])|분",
    3_600.0: r"h|hrs?|hours?|std|stunden?|heures?|horas?|or[ae]|uur|uren|godzin[aęy]?|timm(?:e|ar)"
    r"|timer?|tuntia?|óra|saat|jam|giờ|ч|час(?:а|ов)?|ώρ(?:α|ες)|ساع(?:ة|ات)|שעות|घंटे|ชั่วโมง"
    r"|小[时時]|時間|시간",
    86_400.0: r"d|days?|tag(?:en?)?|jours?|d[ií]as?|giorn[io]|dag(?:en|ar)?|dn[ií]|dzień|gün|hari"
    r"|ngày|дн(?:я|ей)|день|أيام|يوم|ימים|दिन|วัน|天|日(?:間|後)|일",
}
_PART = re.compile(
    r"(?<!\d)(?<!\d[.,])(\d+(?:[.,]\d+)?)[ \u00a0-]?(?:"
    + "|".join(f"(?P<u{index}>{words})" for index, words in enumerate(_UNITS.values()))
    + r")(?:(?<=[^\x00-\u02ff])|(?![^\W\d_]))",
    re.IGNORECASE,
)
_UNIT_GROUPS = [(unit, f"u{index}") for index, unit in enumerate(_UNITS)]
_IS_INSIDE = re.compile(r"(?:[A-Za-z0-9_.,]|(?<!\d)-)\Z")  # before a number: it is a part of a name
_JOINT = re.compile(r"[\s,.]*(?:(?:and|und|et|y|e|en|och|i|и|ve|و)\s*)?", re.IGNORECASE)
# What makes a length the measure of something: "20 requests per 60 s", "in the last 24 hours".
_IS_MEASURE_BEHIND = re.compile(
    r"(?:\b(?:per|pro|par|por|je|every|each|within|innerhalb|alle|last|past|previous|letzten?"
    r"|derni[eè]re?s|[uú]ltim[oaei]s?|кажды[ей]|последни[ех]|в|за|على مدى|كل)|/|[每毎]|过去|過去"
    r"|最近|直近)\s*\Z",
    re.IGNORECASE,
)
_IS_MEASURE_BEFORE = re.compile(
    r"[ -]?(?:window|limit|period|interval|timeout|fenster|内|以内|当たり|あたり|당)", re.IGNORECASE
)
_ISO = re.compile(
    r"\bP(?=\d|T\d)(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:[.,]\d+)?)S)?)?\b"
)
_ISO_SECONDS = (604_800, 86_400, 3_600, 60, 1)
_CLOCK = re.compile(r"(?:(\d{1,2})\.)?(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)")
_CLOCK_SECONDS = (86_400, 3_600, 60, 1)


@dataclass(frozen=True)
class Duration:
    """A length of time and its place. `is_measure` if it measures something else, as a rate."""

    seconds: float
    start: int
    end: int
    is_measure: bool = False


def find_durations(text: str) -> list[Duration]:
    """Return the lengths of time that a text names, in order; those of several units as one."""
    found = [
        Duration(_sum(match.groups(), _ISO_SECONDS), match.start(), match.end())
        for match in _ISO.finditer(text)
    ]
    iso_ends = {duration.end for duration in found}
    found += (each for each in _join_parts(text) if each.end not in iso_ends)
    return sorted(found, key=lambda duration: duration.start)


def parse_duration(text: str) -> float | None:
    """Return the seconds of a text that is nothing but a length of time, or None."""
    text = text.strip()
    if match := _CLOCK.fullmatch(text):
        return _sum(match.groups(), _CLOCK_SECONDS)
    durations = find_durations(text)
    if len(durations) == 1 and (durations[0].start, durations[0].end) == (0, len(text)):
        return durations[0].seconds
    return None


def _join_parts(text: str) -> Iterator[Duration]:
    current: Duration | None = None
    last_unit = 0.0
    for match in _PART.finditer(text):
        unit = next(unit for unit, name in _UNIT_GROUPS if match[name] is not None)
        seconds = _parse_number(match[1]) * unit
        if current and unit < last_unit and _JOINT.fullmatch(text, current.end, match.start()):
            current = Duration(current.seconds + seconds, current.start, match.end())
        elif _IS_INSIDE.search(text[max(0, match.start() - 2) : match.start()]):
            continue
        else:
            if current:
                yield _mark_measure(text, current)
            current = Duration(seconds, match.start(), match.end())
        last_unit = unit
    if current:
        yield _mark_measure(text, current)


def _mark_measure(text: str, duration: Duration) -> Duration:
    is_measure = bool(
        _IS_MEASURE_BEHIND.search(text, max(0, duration.start - 20), duration.start)
        or _IS_MEASURE_BEFORE.match(text, duration.end)
    )
    return Duration(duration.seconds, duration.start, duration.end, is_measure)


def _parse_number(digits: str) -> float:
    """Return a number; three digits behind a comma are thousands."""
    whole, comma, rest = digits.partition(",")
    return float(whole + rest if len(rest) == 3 else f"{whole}.{rest}" if comma else whole)


def _sum(parts: tuple[str | None, ...], units: tuple[int, ...]) -> float:
    pairs = zip(parts, units, strict=True)
    return sum(float((part or "0").replace(",", ".")) * unit for part, unit in pairs)
