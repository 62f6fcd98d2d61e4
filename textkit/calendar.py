"""The names of months and weekdays, in English and German, in lower case."""

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


def list_names(table: dict[str, int], number: int) -> list[str]:
    """Return the names of a month or a weekday in one of the tables."""
    return [name for name, each in table.items() if each == number]
