"""Read JSON request bodies, up to a number of bytes."""

import json
import math
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from chatcore.rest import limits
from chatcore.rest.problems import TooLargeProblem
from chatcore.sessions.truncation import clean_json


class JsonBodyParser(BaseParser):
    """A parser of JSON bodies that drops NUL characters and lone surrogates.

    No database stores these two, and clients send them by accident.
    """

    media_type = "application/json"
    max_bytes = limits.BODY_BYTES

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON value of the body.

        Raises TooLargeProblem (413) above `max_bytes`, and ParseError (400) for what is not JSON.
        """
        # One byte more than allowed is enough to know that the body is too large.
        raw_body = stream.read(self.max_bytes + 1)
        if len(raw_body) > self.max_bytes:
            megabytes = self.max_bytes // limits.MB
            raise TooLargeProblem(f"A request body may have at most {megabytes} MB.")
        try:
            body = json.loads(
                raw_body, parse_constant=_refuse_constant, parse_float=_parse_finite_float
            )
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {error}") from None
        # Both kinds of characters can only be written as escapes, so most bodies need no walk.
        return clean_json(body) if b"\\u" in raw_body else body


class ImportBodyParser(JsonBodyParser):
    """A parser of long JSON bodies: imports, and whole histories that clients send."""

    max_bytes = limits.IMPORT_BODY_BYTES


def _refuse_constant(constant: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads and JSON does not know."""
    raise ValueError(f"{constant} is not a JSON value")


def _parse_finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number
