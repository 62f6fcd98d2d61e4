"""Cursor pages: a page begins after a row, not at a number, so what is inserted meanwhile shifts nothing."""

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import ValidationError
from django.db.models import Field, Model, Q, QuerySet
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from chatcore.rest.problems import InvalidFieldError

DEFAULT_LIMIT = 50
MAX_LIMIT = 100


@dataclass(frozen=True)
class Cursor:
    """A place between two rows, and which way the page goes from it. `values` are the row's, in the order of the ordering."""

    values: list[str]
    is_backward: bool = False

    def encode(self) -> str:
        """As it stands in an address."""
        return (
            base64.urlsafe_b64encode(json.dumps([int(self.is_backward), *self.values]).encode())
            .decode()
            .rstrip("=")
        )

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Raises the 400 problem that names `cursor`."""
        try:
            is_backward, *values = json.loads(
                base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
            )
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise InvalidFieldError("cursor", "This is no cursor of ours.") from None
        if not values or not all(isinstance(value, str) for value in values):
            raise InvalidFieldError("cursor", "This is no cursor of ours.")
        return cls(values, bool(is_backward))


class KeysetPagination(BasePagination):
    """Pages over a queryset whose `order_by` names local fields, all in one direction, the last of them unique."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The page's rows; one more is read to know whether others follow."""
        self.request = request
        self.field_names = [str(name).lstrip("-") for name in queryset.query.order_by]
        limit = parse_limit(request)
        cursor_text = request.query_params.get("cursor")
        self.cursor = Cursor.decode(cursor_text) if cursor_text else None
        is_backward = bool(self.cursor and self.cursor.is_backward)
        rows = list(
            (self._filter_from_cursor(queryset) if self.cursor else queryset).order_by(
                *_get_ordering(queryset, is_backward)
            )[: limit + 1]
        )
        self.has_more, rows = len(rows) > limit, rows[:limit]
        self.page = rows[::-1] if is_backward else rows
        return self.page

    def _filter_from_cursor(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        assert self.cursor
        values = _parse_values(queryset.model, self.field_names, self.cursor.values)
        is_descending = str(queryset.query.order_by[0]).startswith("-")
        lookup = "lt" if is_descending != self.cursor.is_backward else "gt"
        condition, equal_prefix = Q(), Q()
        for name, value in zip(self.field_names, values, strict=True):
            condition |= equal_prefix & Q(**{f"{name}__{lookup}": value})
            equal_prefix &= Q(**{name: value})
        return queryset.filter(condition)

    def get_paginated_response(self, data: Any) -> Response:
        """The page and its neighbors' addresses."""
        is_backward = bool(self.cursor and self.cursor.is_backward)
        has_next = is_backward or self.has_more
        has_previous = self.has_more if is_backward else self.cursor is not None
        return Response(
            {
                "results": data,
                "next": self._build_link(-1, is_backward=False) if has_next else None,
                "previous": self._build_link(0, is_backward=True) if has_previous else None,
            }
        )

    def _build_link(self, row_index: int, *, is_backward: bool) -> str:
        if self.page:
            values = [
                _format_value(getattr(self.page[row_index], name)) for name in self.field_names
            ]
        else:
            values = self.cursor.values if self.cursor else []
        return replace_query_param(
            self.request.build_absolute_uri(), "cursor", Cursor(values, is_backward).encode()
        )

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        """`limit` and `cursor`, for the OpenAPI document."""
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        cursor = {"type": "string", "description": "From `next` or `previous` of another page."}
        return [
            {"name": name, "in": "query", "schema": schema}
            for name, schema in (("limit", limit), ("cursor", cursor))
        ]

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A page, for the OpenAPI document."""
        link = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["results", "next", "previous"],
            "properties": {"results": schema, "next": link, "previous": link},
        }


def build_single_page(results: Any) -> Response:
    """A list that is always short, in the shape of a page."""
    return Response({"results": results, "next": None, "previous": None})


def parse_limit(request: Request) -> int:
    """How many results the query asks for. Raises the 400 problem that names `limit`."""
    text = request.query_params.get("limit")
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdigit() and len(text) < 4 and 1 <= int(text) <= MAX_LIMIT):
        raise InvalidFieldError("limit", f"A page has 1 to {MAX_LIMIT} results.")
    return int(text)


def _get_ordering(queryset: QuerySet[Any], is_backward: bool) -> list[str]:
    names = [str(name) for name in queryset.query.order_by]
    return (
        [name[1:] if name.startswith("-") else f"-{name}" for name in names]
        if is_backward
        else names
    )


def _parse_values(model: type[Model], names: list[str], values: list[str]) -> list[Any]:
    try:
        return [
            _parse_value(_get_field(model, name), value)
            for name, value in zip(names, values, strict=True)
        ]
    except (ValidationError, ValueError, OverflowError):
        raise InvalidFieldError("cursor", "This is no cursor of this list.") from None


def _parse_value(field: "Field[Any, Any]", text: str) -> Any:
    value = field.to_python(text)
    field.run_validators(value)
    return value


def _get_field(model: type[Model], name: str) -> "Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _format_value(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
