"""Read JSON request bodies, up to a number of bytes."""

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import BaseParser

from chatcore.rest import limits
from chatcore.rest.problems import TooLargeProblem
from chatcore.rest.strict_json import StrictDecoder


class JsonBodyParser(BaseParser):
    """A parser of JSON bodies, which cleans their texts."""

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
            return json.loads(raw_body, cls=StrictDecoder)
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}") from None


class ImportBodyParser(JsonBodyParser):
    """A parser of long JSON bodies: imports, and whole histories that clients send."""

    max_bytes = limits.IMPORT_BODY_BYTES
