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

from chatcore.rest.problems import Invalid

DEFAULT_LIMIT = 50
MAX_LIMIT = 100


@dataclass(frozen=True)
class Cursor:
    """A place between two rows, and which way the page goes from it. `values` are the row's, in the order of the ordering."""

    values: list[str]
    back: bool = False

    def encode(self) -> str:
        """As it stands in an address."""
        return (
            base64.urlsafe_b64encode(json.dumps([int(self.back), *self.values]).encode())
            .decode()
            .rstrip("=")
        )

    @classmethod
    def decode(cls, text: str) -> "Cursor":
        """Raises the 400 problem that names `cursor`."""
        try:
            back, *values = json.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, TypeError, binascii.Error, RecursionError):
            raise Invalid("cursor", "This is no cursor of ours.") from None
        if not values or not all(isinstance(value, str) for value in values):
            raise Invalid("cursor", "This is no cursor of ours.")
        return cls(values, bool(back))


class CursorPages(BasePagination):
    """Pages over a queryset whose `order_by` names local fields, all in one direction, the last of them unique."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The page's rows; one more is read to know whether others follow."""
        self.request = request
        self.fields = [str(name).lstrip("-") for name in queryset.query.order_by]
        limit = limit_of(request)
        given = request.query_params.get("cursor")
        self.cursor = Cursor.decode(given) if given else None
        back = bool(self.cursor and self.cursor.back)
        rows = list(
            (self._beyond(queryset) if self.cursor else queryset).order_by(
                *_turned(queryset, back)
            )[: limit + 1]
        )
        self.more, rows = len(rows) > limit, rows[:limit]
        self.page = rows[::-1] if back else rows
        return self.page

    def _beyond(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        assert self.cursor
        values = _typed(queryset.model, self.fields, self.cursor.values)
        descending = str(queryset.query.order_by[0]).startswith("-")
        side = "lt" if descending != self.cursor.back else "gt"
        beyond, equal = Q(), Q()
        for name, value in zip(self.fields, values, strict=True):
            beyond |= equal & Q(**{f"{name}__{side}": value})
            equal &= Q(**{name: value})
        return queryset.filter(beyond)

    def get_paginated_response(self, data: Any) -> Response:
        """The page and its neighbors' addresses."""
        back = bool(self.cursor and self.cursor.back)
        following = back or self.more
        before = self.more if back else self.cursor is not None
        return Response(
            {
                "results": data,
                "next": self._link(-1, back=False) if following else None,
                "previous": self._link(0, back=True) if before else None,
            }
        )

    def _link(self, edge: int, *, back: bool) -> str:
        if self.page:
            values = [_text(getattr(self.page[edge], name)) for name in self.fields]
        else:
            values = self.cursor.values if self.cursor else []
        return replace_query_param(
            self.request.build_absolute_uri(), "cursor", Cursor(values, back).encode()
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


def whole(results: Any) -> Response:
    """A list that is always short, in the shape of a page."""
    return Response({"results": results, "next": None, "previous": None})


def limit_of(request: Request) -> int:
    """How many results the query asks for. Raises the 400 problem that names `limit`."""
    given = request.query_params.get("limit")
    if given is None:
        return DEFAULT_LIMIT
    if not (
        given.isascii() and given.isdigit() and len(given) < 4 and 1 <= int(given) <= MAX_LIMIT
    ):
        raise Invalid("limit", f"A page has 1 to {MAX_LIMIT} results.")
    return int(given)


def _turned(queryset: QuerySet[Any], back: bool) -> list[str]:
    names = [str(name) for name in queryset.query.order_by]
    return [name[1:] if name.startswith("-") else f"-{name}" for name in names] if back else names


def _typed(model: type[Model], names: list[str], values: list[str]) -> list[Any]:
    try:
        return [
            _read(_field(model, name), value) for name, value in zip(names, values, strict=True)
        ]
    except (ValidationError, ValueError, OverflowError):
        raise Invalid("cursor", "This is no cursor of this list.") from None


def _read(field: "Field[Any, Any]", text: str) -> Any:
    value = field.to_python(text)
    field.run_validators(value)
    return value


def _field(model: type[Model], name: str) -> "Field[Any, Any]":
    field = model._meta.get_field(name)
    assert isinstance(field, Field)
    return field


def _text(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
