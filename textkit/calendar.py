"""The names of months and weekdays, in English and German, in lower case; days in words."""

from datetime import date

_MONTHS = (
    "january januar jänner",
    "february februar",
    "march märz maerz",
    "april",
    "may mai",
    "june juni",
    "july juli",
    "august",
    "september",
    "october oktober",
    "november",
    "december dezember",
)
_SHORT_MONTHS = (
    "jan",
    "feb",
    "mar mär mrz",
    "apr",
    "",
    "jun",
    "jul",
    "aug",
    "sep sept",
    "oct okt",
    "nov",
    "dec dez",
)
_WEEKDAYS = (
    "monday montag",
    "tuesday dienstag",
    "wednesday mittwoch",
    "thursday donnerstag",
    "friday freitag",
    "saturday samstag sonnabend",
    "sunday sonntag",
)
_SHORT_WEEKDAYS = ("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun")


def _number(groups: tuple[str, ...], first: int) -> dict[str, int]:
    return {name: number for number, names in enumerate(groups, first) for name in names.split()}


# Written out; some of the short ones are words or people, too: "may", "Jan".
MONTH_NAMES = _number(_MONTHS, 1)
MONTHS = MONTH_NAMES | _number(_SHORT_MONTHS, 1)
WEEKDAY_NAMES = _number(_WEEKDAYS, 0)  # Monday is 0, as in datetime
WEEKDAYS = (
    WEEKDAY_NAMES
    | {f"{name}s": number for name, number in WEEKDAY_NAMES.items()}
    | _number(_SHORT_WEEKDAYS, 0)
)


def describe_days(first: date, last: date) -> str:
    """Return two days and all between them in words: `30 August to 6 September 2026`."""
    end = f"{last.day} {_name_month(last)} {last.year}"
    if first == last:
        return end
    if first.year != last.year:
        return f"{first.day} {_name_month(first)} {first.year} to {end}"
    if first.month != last.month:
        return f"{first.day} {_name_month(first)} to {end}"
    return f"{first.day} to {end}"


def describe_day(day: date) -> str:
    """Return a day in words, as `describe_days` does."""
    return describe_days(day, day)


def describe_weekday(day: date) -> str:
    """Return a day with its weekday in words: `Tuesday, 1 September 2026`."""
    return f"{list_names(WEEKDAY_NAMES, day.weekday())[0].capitalize()}, {describe_day(day)}"


def parse_day(text: str) -> date:
    """Return the day that `describe_day` wrote."""
    day, month, year = text.split()
    return date(int(year), MONTH_NAMES[month.lower()], int(day))


def _name_month(day: date) -> str:
    return list_names(MONTH_NAMES, day.month)[0].capitalize()


def list_names(table: dict[str, int], number: int) -> list[str]:
    """Return the names of a month or a weekday in one of the tables."""
    return [name for name, each in table.items() if each == number]
