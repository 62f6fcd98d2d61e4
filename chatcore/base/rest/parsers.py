"""Read JSON request bodies, up to a number of bytes and of values.

A few bytes of JSON make a value that takes seventy in memory, so a long body is looked through
before it is parsed, and one person's long bodies are parsed one after the other.
"""

import contextlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any, NoReturn

from django.contrib.auth import SESSION_KEY
from django.http import HttpRequest
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from chatcore.base.rest import limits
from chatcore.base.rest.problems import Problem, TooLargeProblem
from chatcore.base.slots import PersonLocks
from chatcore.base.threads import give_back_connection
from chatcore.base.truncation import clean_json

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


def parse_large_json(raw_body: bytes, *, max_values: int) -> object:
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
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, object] | None = None,
    ) -> Any:
        """Return the JSON value of the body.

        Raises TooLargeProblem (413) above `max_bytes` or `max_values`, ParseError (400) for what is
        not JSON, and the 415 problem for a body that is compressed.
        """
        request = (parser_context or {}).get("request")
        if isinstance(request, Request):
            _refuse_compressed_body(request)
        if not isinstance(request, Request) or not is_large(request):
            return self._read(stream)
        with hold_large_body(name_sender(request)):
            return self._read(stream)

    def _read(self, stream: IO[bytes]) -> object:
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


def _refuse_compressed_body(request: Request) -> None:
    encoding = request.headers.get("Content-Encoding") or "identity"
    if encoding.strip().lower() != "identity":
        detail = f"Send the body as it is: the Content-Encoding {encoding[:40]!r} is not read here."
        raise Problem(415, "unsupported_media_type", detail)


def name_sender(request: Any) -> str:
    """Return whose body this is, before anybody has been let in.

    A page's sender is the one of its session. To ask for the user would begin a circle there: the
    check of a page's token asks for the body.
    """
    session = getattr(request, "session", None)
    return (session.get(SESSION_KEY) if session else None) or str(request.user.pk)


def is_large(request: Request | HttpRequest) -> bool:
    """Return whether a body is long, or does not say how long it is."""
    length = request.META.get("CONTENT_LENGTH")
    return not length or int(length) > limits.LARGE_BODY_BYTES


class ImportBodyParser(JsonBodyParser):
    """A parser of long JSON bodies: imports, and whole histories that clients send."""

    max_bytes = limits.IMPORT_BODY_BYTES


class SessionBodyParser(ImportBodyParser):
    """A parser of whole sessions, and of many chats at once."""

    max_values = limits.IMPORT_VALUES


class JsonOnlyNegotiation(DefaultContentNegotiation):
    """Content negotiation that ignores the Accept header.

    A browser, or a client that accepts only `text/event-stream`, can then still read a problem.
    """

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """Return the first renderer and its media type."""
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


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
