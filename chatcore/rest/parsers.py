"""Read JSON request bodies, up to a number of bytes and of values.

A few bytes of JSON make a value that takes seventy in memory, so a long body is looked through
before it is parsed, and one person's long bodies are parsed one after the other.
"""

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import IO, Any

from django.contrib.auth import SESSION_KEY
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


@contextlib.contextmanager
def hold_large_body(person: object) -> Iterator[None]:
    """Have a person's other large bodies wait until this one is parsed."""
    give_back_connection()
    with _person_locks.get(str(person)):
        yield


def parse_large_json(raw_body: bytes, *, max_values: int) -> Any:
    """Return the value of a body. Raises TooManyValues before anything is parsed."""
    require_few_values(raw_body, max_values)
    return json.loads(raw_body, cls=StrictDecoder)


def require_few_values(raw_body: bytes, max_values: int) -> None:
    """Raise TooManyValues for a text that would have more values than that."""
    if _count_values(raw_body) > max_values:
        in_texts = (_count_values(raw_body, *text.span()) for text in _STRING.finditer(raw_body))
        if _count_values(raw_body) - sum(in_texts) > max_values:
            raise TooManyValues(f"A request body may have at most {max_values:,} values.")


def _count_values(raw_body: bytes, *span: int) -> int:
    return sum(raw_body.count(sign, *span) for sign in (b"{", b"[", b","))


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
        request = (parser_context or {}).get("request")
        if request is None or not is_large(request):
            return self._read(stream)
        with hold_large_body(name_sender(request)):
            return self._read(stream)

    def _read(self, stream: IO[Any]) -> Any:
        # One byte more than allowed is enough to know that the body is too large.
        raw_body = stream.read(self.max_bytes + 1)
        if len(raw_body) > self.max_bytes:
            megabytes = self.max_bytes // limits.MB
            raise TooLargeProblem(f"A request body may have at most {megabytes} MB.")
        try:
            if len(raw_body) > limits.LARGE_BODY_BYTES:
                return parse_large_json(raw_body, max_values=self.max_values)
            return json.loads(raw_body, cls=StrictDecoder)
        except TooManyValues as error:
            raise TooLargeProblem(str(error)) from None
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from None


def name_sender(request: Any) -> str:
    """Return whose body this is, before anybody has been let in.

    A page's sender is the one of its session. To ask for the user would begin a circle there: the
    check of a page's token asks for the body.
    """
    session = getattr(request, "session", None)
    return (session.get(SESSION_KEY) if session else None) or str(request.user.pk)


def is_large(request: Any) -> bool:
    """Return whether a body is long, or does not say how long it is."""
    length = request.META.get("CONTENT_LENGTH")
    return not length or int(length) > limits.LARGE_BODY_BYTES


class ImportBodyParser(JsonBodyParser):
    """A parser of long JSON bodies: imports, and whole histories that clients send."""

    max_bytes = limits.IMPORT_BODY_BYTES


class SessionBodyParser(ImportBodyParser):
    """A parser of whole sessions, and of many chats at once."""

    max_values = limits.IMPORT_VALUES
