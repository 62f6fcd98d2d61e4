"""Split lists into pages by cursors."""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param
from rest_framework.views import APIView

from chatcore.base.rest.problems import InvalidFieldError

M = TypeVar("M", bound=Model)

DEFAULT_LIMIT = 50
MAX_LIMIT = 100
# Base64 of a JSON list that begins with 0 or 1; nothing is the first page.
CURSOR_PATTERN = "^(?:Wz[AE]s[A-Za-z0-9_-]+)?$"


@dataclass(frozen=True)
class Cursor:
    """A place between two rows, and the direction of the page that begins there.

    `values` are those of the row before the place, in the order of the ordering's fields.
    """

    values: list[str]
    is_backward: bool = False

    def encode(self) -> str:
        """Return the cursor as it is written in a URL: base64 without padding."""
        text = json.dumps([int(self.is_backward), *self.values])
        return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Return the cursor of a URL. Raises the 400 problem that names `cursor`."""
        padded_text = text + "=" * (-len(text) % 4)
        try:
            is_backward, *values = json.loads(base64.urlsafe_b64decode(padded_text))
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise InvalidFieldError("cursor", "This is not a cursor of this API.") from None
        if not values or not all(isinstance(value, str) for value in values):
            raise InvalidFieldError("cursor", "This is not a cursor of this API.")
        return cls(values, bool(is_backward))


class KeysetPagination(BasePagination):
    """Pages that begin after a row and not at a number, so that inserted rows shift nothing.

    The queryset's `order_by` names local fields, all in one direction, the last of them unique.
    REST framework's CursorPagination compares one field only and skips by offset among equal
    values; here all fields are compared, which the database answers from an index.
    """

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any]:
        """Return the rows of the page. Raises the 400 problem that names `limit` or `cursor`."""
        self.request = request
        self.field_names = [str(name).lstrip("-") for name in queryset.query.order_by]
        limit = parse_limit(request)
        cursor_text = request.query_params.get("cursor")
        self.cursor = Cursor.decode(cursor_text) if cursor_text else None
        self.is_backward = bool(self.cursor and self.cursor.is_backward)
        if self.cursor:
            queryset = self._filter_from_cursor(queryset, self.cursor)
        # One row more than the page has tells whether there is another page.
        rows = list(queryset.order_by(*self._get_ordering(queryset))[: limit + 1])
        self.has_more = len(rows) > limit
        self.page = rows[:limit]
        if self.is_backward:
            self.page.reverse()
        return self.page

    def get_paginated_response(self, data: object) -> Response:
        """Return the page with the links to the next and the previous one."""
        has_next = self.is_backward or self.has_more
        has_previous = self.has_more if self.is_backward else self.cursor is not None
        return Response(
            {
                "results": data,
                "next": self._build_link(-1, is_backward=False) if has_next else None,
                "previous": self._build_link(0, is_backward=True) if has_previous else None,
            }
        )

    def get_schema_operation_parameters(self, view: object) -> list[dict[str, object]]:
        """Return `limit` and `cursor` for the OpenAPI document."""
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        cursor = {
            "type": "string",
            "pattern": CURSOR_PATTERN,
            "description": "From `next` or `previous` of another page; empty: the first one.",
        }
        return [
            {"name": "limit", "in": "query", "schema": limit},
            {"name": "cursor", "in": "query", "schema": cursor},
        ]

    def get_paginated_response_schema(self, schema: Mapping[str, object]) -> dict[str, object]:
        """Return the schema of a page for the OpenAPI document."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": link, "previous": link},
        }

    def _get_ordering(self, queryset: QuerySet[Model]) -> list[str]:
        names = [str(name) for name in queryset.query.order_by]
        return [_reverse_direction(name) for name in names] if self.is_backward else names

    def _filter_from_cursor(self, queryset: QuerySet[M], cursor: Cursor) -> QuerySet[M]:
        """Return the rows after the cursor.

        A row is after it if its first field is larger, or equal and its second field is larger,
        and so on; smaller in place of larger in the other direction.
        """
        values = _parse_values(queryset.model, self.field_names, cursor.values)
        is_descending = str(queryset.query.order_by[0]).startswith("-")
        lookup = "lt" if is_descending != cursor.is_backward else "gt"
        condition = Q()
        equal_prefix = Q()
        for name, value in zip(self.field_names, values, strict=True):
            condition |= equal_prefix & Q(**{f"{name}__{lookup}": value})
            equal_prefix &= Q(**{name: value})
        return queryset.filter(condition)

    def _build_link(self, row_index: int, *, is_backward: bool) -> str:
        if self.page:
            row = self.page[row_index]
            values = [_format_value(getattr(row, name)) for name in self.field_names]
        else:
            values = self.cursor.values if self.cursor else []
        cursor_text = Cursor(values, is_backward).encode()
        return replace_query_param(self.request.build_absolute_uri(), "cursor", cursor_text)


def build_single_page(results: object) -> Response:
    """Return a list that is always short, in the form of a page."""
    return Response({"results": results, "next": None, "previous": None})


def parse_limit(request: Request) -> int:
    """Return the number of results that the query wants. Raises the 400 problem for `limit`."""
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    is_number = text.isascii() and text.isdigit() and len(text) < 4
    if not is_number or not 1 <= int(text) <= MAX_LIMIT:
        raise InvalidFieldError("limit", f"A page has 1 to {MAX_LIMIT} results.")
    return int(text)


def _reverse_direction(name: str) -> str:
    return name[1:] if name.startswith("-") else f"-{name}"


def _parse_values(model: type[Model], names: list[str], texts: list[str]) -> list[object]:
    try:
        return [
            _parse_value(_get_field(model, name), text)
            for name, text in zip(names, texts, strict=True)
        ]
    except (ValidationError, ValueError, OverflowError):
        raise InvalidFieldError("cursor", "This is not a cursor of this list.") from None


def _parse_value(field: "Field[Any, Any]", text: str) -> object:
    value = field.to_python(text)
    field.run_validators(value)
    if isinstance(value, datetime):
        value.astimezone(UTC)  # OverflowError: the database would be asked for a year 10,000
    return value


def _get_field(model: type[Model], name: str) -> "Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _format_value(value: object) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
