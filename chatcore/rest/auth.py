"""What crosses the wire: who is asking, addresses, and JSON, both ways."""

import json
import math
from collections.abc import Iterable
from typing import IO, Any

from knox.auth import TokenAuthentication
from rest_framework import exceptions
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

from chatcore.rest import limits
from chatcore.rest.problems import TooLargeProblem
from chatcore.sessions.truncation import clean_json


def build_api_path(request: Request, path: str) -> str:
    """The path of something else in this version of the API, wherever that is mounted."""
    return f"{request.path.partition('/v1/')[0]}/v1/{path}"


class BearerTokenAuthentication(TokenAuthentication):
    """`Authorization: Bearer TOKEN`."""

    def authenticate_credentials(self, token: bytes) -> tuple[Any, Any]:
        """Refuse what is no text, which knox would stumble over."""
        if not token.isascii():
            raise exceptions.AuthenticationFailed("Invalid token.")
        user, auth_token = super().authenticate_credentials(token)
        return user, auth_token


class JsonOnlyNegotiation(DefaultContentNegotiation):
    """Answers are JSON whatever the Accept header wishes, so that a browser or an event stream's client can read a problem."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        """The only one there is."""
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


class JsonBodyParser(BaseParser):
    """A JSON body up to a limit, without the NUL characters and lone surrogates that no database stores."""

    media_type = "application/json"
    max_bytes = limits.BODY_BYTES

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Any = None
    ) -> Any:
        """Read no more than the limit. Raises 413, or 400 with the place where it stops being JSON."""
        raw_body = stream.read(self.max_bytes + 1)
        if len(raw_body) > self.max_bytes:
            raise TooLargeProblem(
                f"A request body has at most {self.max_bytes // (limits.KB * limits.KB)} MB."
            )
        try:
            body = json.loads(
                raw_body, parse_constant=_refuse_constant, parse_float=_parse_finite_float
            )
        except (ValueError, RecursionError) as error:
            raise exceptions.ParseError(f"The body is not JSON: {error}") from None
        return clean_json(body) if b"\\u" in raw_body else body


class ImportBodyParser(JsonBodyParser):
    """The body of an import, which may be long."""

    max_bytes = limits.IMPORT_BODY_BYTES


def _refuse_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


def _parse_finite_float(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number
