"""The list of event types: what the page repeats of it."""

import ast
from pathlib import Path

from django.conf import settings

from chatcore.events.types import EventType, render_event_types_js
from chatcore.models import SessionEvent

PAGE_MODULE = Path(settings.BASE_DIR, "chatcore/static/chatcore/js/event_types.js")


def test_the_page_lists_the_same_event_types() -> None:
    assert PAGE_MODULE.read_text() == render_event_types_js()


def test_every_event_name_fits_its_column() -> None:
    max_length = SessionEvent._meta.get_field("name").max_length
    assert max(len(event) for event in EventType) <= (max_length or 0)


def test_no_module_writes_the_name_of_an_event_itself() -> None:
    # The second has one in the condition of an index; tables know nothing of what is above them.
    owners = {"chatcore/events/types.py", "chatcore/models/event.py"}
    names = {event.value for event in EventType}
    repeated_names = [
        f"{path}:{node.lineno} {node.value}"
        for package in ("chatcore", "compaction")
        for path in sorted(Path(settings.BASE_DIR, package).rglob("*.py"))
        if "migrations" not in path.parts  # they repeat what was true once
        and path.relative_to(settings.BASE_DIR).as_posix() not in owners
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in names
    ]
    assert not repeated_names
