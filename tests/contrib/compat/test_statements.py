"""How many statements a turn over a compatible API costs."""

import threading
from statistics import median_low
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper
from openai import OpenAI

from chatcore.base.runner import turn_runner
from tests.support.http_client import http
from tests.support.openai_client import MODEL, client

__all__ = ["client"]

pytestmark = pytest.mark.django_db(transaction=True)
MAX_STATEMENTS = 44  # of a turn with a name; measured: 37 on SQLite, 36 on PostgreSQL


def test_a_turn_without_a_name_costs_hardly_more_statements_than_one_with_a_name(
    client: OpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    execute = CursorWrapper.execute

    def note(self: Any, sql: str, params: Any = None) -> Any:
        # In how many pieces the words of an answer are stored depends on how busy the machine is.
        if threading.current_thread().name != "delta-writer":
            statements.append(sql)
        return execute(self, sql, params)

    monkeypatch.setattr(CursorWrapper, "execute", note)

    def count_turn(**headers: str) -> int:
        counts = []
        history = [{"role": "user", "content": f"Hello? {headers}"}]
        for number in range(8):
            statements.clear()
            response = http.post(
                f"{client.base_url}chat/completions",
                json={"model": MODEL, "messages": history},
                headers={"authorization": f"Bearer {client.api_key}", **headers},
                timeout=60,
            )
            turn_runner.drain()
            counts.append(len(statements))
            answer = response.json()["choices"][0]["message"]["content"]
            history += [
                {"role": "assistant", "content": answer},
                {"role": "user", "content": f"And {number}?"},
            ]
        return median_low(counts[1:])  # what is asked once in a while falls into some of them

    named_count = count_turn(**{"x-session-id": "mine"})
    assert named_count <= MAX_STATEMENTS, named_count
    unnamed_count = count_turn()
    # Two, and two more where the writer of words was quicker than the end of the answer.
    assert unnamed_count <= named_count + 4, (unnamed_count, named_count)
