"""Describe the public surface of the product as lines of text."""

import ast
import functools
import re
import typing
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from django.contrib import admin
from django.core.management import get_commands, load_command_class
from django.db import connection
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from chatcore.events import types as event_types

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("chatcore", "compaction", "models_registry")
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
# Values of the parts of routes; they name no row.
EXAMPLES = {
    "int": "1",
    "path": "x",
    "slug": "x",
    "str": "x",
    "uuid": "00000000-0000-0000-0000-000000000000",
}


def list_environment_variables() -> Iterator[str]:
    """Yield each variable of the environment that is read, and its reader."""
    seen = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for call in ast.walk(ast.parse(path.read_text())):
                if not isinstance(call, ast.Call) or not call.args:
                    continue
                name = getattr(call.func, "id", "")
                first = call.args[0]
                if name.startswith("read_") and isinstance(first, ast.Constant):
                    seen.add(f"{first.value!s} {name.removeprefix('read_')}")
    yield from sorted(seen)


def list_events() -> Iterator[str]:
    """Yield each event's name with the fields of its payload."""
    fields: dict[str, list[str]] = {}
    for pair in typing.get_args(event_types.NewEvent):
        names, payload = typing.get_args(pair)
        required = typing.get_type_hints(payload)
        optional = payload.__optional_keys__
        described = [f"{key}?" if key in optional else key for key in sorted(required)]
        for name in typing.get_args(names):
            fields[name.value] = described
    for event in event_types.EventType:
        yield f"{event.value}: {' '.join(fields.get(event.value, ['-']))}"


def list_commands() -> Iterator[str]:
    """Yield each command of the product with its arguments."""
    for name, package in sorted(get_commands().items()):
        if package.split(".")[0] not in PACKAGES:
            continue
        parser = load_command_class(package, name).create_parser("chatcore", name)
        yield f"{name} {' '.join(sorted(_list_arguments(parser)))}".rstrip()


def _list_arguments(parser: ArgumentParser) -> Iterator[str]:
    standard = "--version --verbosity --settings --pythonpath --traceback --no-color --force-color"
    for action in parser._actions:
        longest = max(action.option_strings, key=len, default=action.dest)
        if longest not in {*standard.split(), "--help", "--skip-checks"}:
            yield longest


def list_admin_pages() -> Iterator[str]:
    """Yield each model of the admin with its columns, filters, search and actions."""
    for model, page in sorted(admin.site._registry.items(), key=lambda item: item[0]._meta.label):
        yield model._meta.label
        yield f"  columns {' '.join(_name(column) for column in page.list_display)}"
        yield f"  filters {' '.join(_name(part) for part in page.list_filter)}".rstrip()
        yield f"  search {' '.join(page.search_fields)}".rstrip()
        yield f"  actions {' '.join(_name(action) for action in page.actions or [])}".rstrip()


def _name(part: Any) -> str:
    if isinstance(part, tuple):
        part = part[0]
    return part if isinstance(part, str) else part.__name__


def list_columns() -> Iterator[str]:
    """Yield each column, index and unique constraint of the database."""
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            yield table
            description = connection.introspection.get_table_description(cursor, table)
            for column in sorted(description, key=lambda column: column.name):
                optional = " null" if column.null_ok else ""
                yield f"  {column.name} {_describe_type(column)}{optional}"
            constraints = connection.introspection.get_constraints(cursor, table)
            described = {
                f"  {_kind(facts)} {' '.join(facts['columns'] or ['(expression)'])}"
                for facts in constraints.values()
            }
            yield from sorted(described)


def _describe_type(column: Any) -> str:
    """Return the database's own name of a column's type."""
    if isinstance(column.type_code, str):  # SQLite
        return column.type_code.lower()
    name = _name_postgresql_type(column.type_code)
    return f"{name}({column.display_size})" if column.display_size else name


@functools.cache
def _name_postgresql_type(number: int) -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT format_type(%s, NULL)", [number])
        return str(cursor.fetchone()[0])


def _kind(facts: Mapping[str, Any]) -> str:
    if facts["primary_key"]:
        return "key"
    if facts["foreign_key"]:
        table, column = facts["foreign_key"]
        return f"reference({table}.{column})"
    if facts["check"]:
        return "check"
    return "unique" if facts["unique"] else "index"


def list_answers_to_strangers() -> Iterator[str]:
    """Yield each route with what a stranger gets for each method."""
    client = Client(raise_request_exception=False)
    for route in sorted(set(_list_routes())):
        answers = []
        for method in METHODS:
            response = client.generic(method, _make_path(route), b"{}", "application/json")
            answers.append(f"{method} {response.status_code}")
        yield f"{route}: {', '.join(answers)}"


def _list_routes(patterns: list[Any] | None = None, before: str = "") -> Iterator[str]:
    for entry in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(entry.pattern)
        if isinstance(entry, URLResolver):
            yield from _list_routes(entry.url_patterns, route)
        elif isinstance(entry, URLPattern):
            yield route


def _make_path(route: str) -> str:
    """Return a path that the route matches."""
    path = re.sub(r"\(\?P<\w+>((?:resp_|conv_)?).*?\)(?=/|\$|-)", r"\1x", route)
    path = re.sub(r"<(?:(\w+):)?\w+>", lambda match: EXAMPLES[match[1] or "str"], path)
    return "/" + re.sub(r"[\^$\\]|/\?$", "", path.replace("/?$", ""))
