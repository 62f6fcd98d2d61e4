"""JSON as the standard has it, with texts that a database can store."""

import json
import math
from typing import Any, NoReturn

from chatcore.sessions.truncation import clean_json


class StrictDecoder(json.JSONDecoder):
    """Refuses NaN, infinite numbers and endless nesting; drops NUL characters and lone surrogates.

    No database stores these two, and clients send them by accident.
    """

    def __init__(self) -> None:
        super().__init__(parse_constant=_refuse_constant, parse_float=_parse_finite_float)

    def decode(self, text: str, *args: Any) -> Any:
        """Return the value. Raises JSONDecodeError, also for what Python would read."""
        try:
            value = super().decode(text, *args)
            return clean_json(value) if _may_need_cleaning(text) else value
        except json.JSONDecodeError:
            raise
        except (ValueError, RecursionError) as error:
            raise json.JSONDecodeError(str(error), text, 0) from None


def _may_need_cleaning(text: str) -> bool:
    # Both kinds of characters are written as escapes, so most texts need no walk.
    if "\\u" in text:
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _refuse_constant(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not know."""
    raise ValueError(f"{constant} is not a JSON value")


def _parse_finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number
