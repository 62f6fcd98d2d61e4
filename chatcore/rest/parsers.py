"""Read JSON request bodies, up to a number of bytes and of values.

A few bytes of JSON make a value that takes seventy in memory, so a long body is looked through
before it is parsed, and one person's long bodies are parsed one after the other.
"""

import json
import re
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from chatcore.rest import limits
from chatcore.rest.problems import TooLargeProblem
from chatcore.rest.strict_json import StrictDecoder
from chatcore.slots import PersonLocks
from chatcore.threads import give_back_connection

_person_locks = PersonLocks()
# A text that never ends goes to the end, so that each byte is looked at once.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)


class TooManyValues(ValueError):
    """A body has more values than may be parsed; the text is for the sender."""


def parse_large_json(raw_body: bytes, *, person: object, max_values: int) -> Any:
    """Return the value of a body, which this person's other large bodies wait for.

    Raises TooManyValues before anything is parsed, and JSONDecodeError.
    """
    if _count_values(raw_body) > max_values and (
        _count_values(_STRING.sub(b"", raw_body)) > max_values
    ):
        raise TooManyValues(f"A request body may have at most {max_values:,} values.")
    give_back_connection()
    with _person_locks.get(person):
        return json.loads(raw_body, cls=StrictDecoder)


def _count_values(raw_body: bytes) -> int:
    return sum(map(raw_body.count, (b"{", b"[", b",")))


class JsonBodyParser(BaseParser):
    """A parser of JSON bodies, which cleans their texts."""

    media_type = "application/json"
    max_bytes = limits.BODY_BYTES
    max_values = limits.BODY_VALUES

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the JSON value of the body.

        Raises TooLargeProblem (413) above `max_bytes` or `max_values`, and ParseError (400) for
        what is not JSON.
        """
        # One byte more than allowed is enough to know that the body is too large.
        raw_body = stream.read(self.max_bytes + 1)
        if len(raw_body) > self.max_bytes:
            megabytes = self.max_bytes // limits.MB
            raise TooLargeProblem(f"A request body may have at most {megabytes} MB.")
        try:
            if len(raw_body) > limits.LARGE_BODY_BYTES:
                request = (parser_context or {}).get("request")
                person = getattr(getattr(request, "user", None), "pk", None)
                return parse_large_json(raw_body, person=person, max_values=self.max_values)
            return json.loads(raw_body, cls=StrictDecoder)
        except TooManyValues as error:
            raise TooLargeProblem(str(error)) from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from None


class ImportBodyParser(JsonBodyParser):
    """A parser of long JSON bodies: imports, and whole histories that clients send."""

    max_bytes = limits.IMPORT_BODY_BYTES


class SessionBodyParser(ImportBodyParser):
    """A parser of whole sessions, and of many chats at once."""

    max_values = limits.IMPORT_VALUES
