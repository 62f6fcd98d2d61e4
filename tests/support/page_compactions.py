"""Long sessions on a page, and runs that summarize them while the page is watched."""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from playwright.sync_api import Page

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.browsing import store_exchange

SUMMARY = """## Goal

The user asked six questions, numbered from zero to five, each of them about everything, \
and wanted a short answer to each.

## Progress

- Every question was answered with its own number and nothing else.
- No decision was taken, and nothing is left open.
"""


def fill_long(session: Session, *, exchanges: int = 6, words: int = 120) -> None:
    """Store enough exchanges for a summary."""
    for number in range(exchanges):
        store_exchange(
            session, f"Question {number} " + "about everything " * words, f"Answer {number}"
        )


def expect_request(page: Page) -> AbstractContextManager[Any]:
    """Wait in the `with` for the answer to a request for a run, and not to that for a preview."""
    return page.expect_response(
        lambda response: response.url.endswith("/compact") and response.status == 202
    )


def run_in_background(work: Callable[..., Any], *arguments: Any) -> threading.Thread:
    thread = threading.Thread(target=work, args=arguments)
    thread.start()
    return thread


def execute_run(run: CompactionRun) -> CompactionRun:
    """Execute the run in a thread of its own, because Playwright's loop runs on this one."""
    run_in_background(engine.execute_run, run.pk).join()
    run.refresh_from_db()
    assert run.status == "applied", run.reason
    return run
