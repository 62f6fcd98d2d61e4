"""Note the statements of all threads, and the errors that the database answered some with."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper


@dataclass
class Statements:
    """What was executed, and in which threads. Methods of lists are safe in threads."""

    texts: list[str] = field(default_factory=list)
    threads: list[str] = field(default_factory=list)
    errors: list[Exception] = field(default_factory=list)

    def count(self, verb: str) -> int:
        return sum(text.startswith(verb) for text in self.texts)


@contextmanager
def note_statements() -> Iterator[Statements]:
    """Note what is executed meanwhile, also by threads that were connected before."""
    statements = Statements()
    execute = CursorWrapper.execute

    def note(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        statements.texts.append(sql)
        statements.threads.append(threading.current_thread().name)
        try:
            return execute(self, sql, params)
        except Exception as error:
            statements.errors.append(error)
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CursorWrapper, "execute", note)
        yield statements
