"""A signed-in Chromium, and helpers for the tests of the pages."""

import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from django.contrib.auth.models import User
from django.test import Client
from playwright.sync_api import Browser, Page, sync_playwright

from chatcore.models import Message, Session, Turn
from tests.conftest import Live

# None stands for the browser that playwright installed.
CHROMIUM = (
    os.environ.get("CHATCORE_BROWSER")
    or shutil.which("chromium-headless-shell")
    or shutil.which("chromium")
)
ARGUMENTS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
)
# Milliseconds that a page may take on a busy machine. Only a failing test waits that long.
EXPECT_TIMEOUT = ACTION_TIMEOUT = 120_000
PHONE = {"width": 360, "height": 740}


class PausedChunks(list[str]):
    """Chunks of an answer, the last of which is not sent before `resume` is set."""

    def __init__(self, *chunks: str) -> None:
        super().__init__(chunks)
        self.resume = threading.Event()

    def __iter__(self) -> Iterator[str]:
        for number in range(len(self)):
            if number == len(self) - 1:
                self.resume.wait()
            yield self[number]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Start Chromium. Playwright's event loop runs on this thread, where the ORM is called, too."""
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, live: Live, user: User) -> Iterator[Page]:
    """Open a page that is signed in as the user.

    The test fails when a script fails or when the content security policy blocks something.
    """
    client = Client()
    client.force_login(user)
    context = browser.new_context(
        viewport={"width": 1280, "height": 860},
        base_url=live.url,
        locale="en-US",
        service_workers="block",  # what a test sees of the pages would go past `page.route`
    )
    context.add_cookies(
        [{"name": "sessionid", "value": client.cookies["sessionid"].value, "url": live.url}]
    )
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    context.set_default_timeout(ACTION_TIMEOUT)
    new_page = context.new_page()
    problems: list[str] = []
    new_page.on("pageerror", lambda error: problems.append(str(error)))
    new_page.on(
        "console",
        lambda line: problems.append(line.text) if "Content Security Policy" in line.text else None,
    )
    yield new_page
    context.close()
    assert not problems, problems


def send_message(page: Page, words: str) -> None:
    """Write a message and send it."""
    page.get_by_label("Your message").fill(words)
    page.get_by_label("Your message").press("Enter")


def wait_until(page: Page, condition: Callable[[], object]) -> None:
    """Wait for a condition that the page does not show, and let the page go on meanwhile."""
    deadline = time.monotonic() + EXPECT_TIMEOUT / 1_000
    while not condition():
        assert time.monotonic() < deadline, "The condition did not become true."
        page.wait_for_timeout(50)


def store_exchange(session: Session, *words: str) -> None:
    """Store a finished exchange; the texts are the user's and the model's in turn."""
    turn = Turn.objects.create(session=session, status="completed", lease_until=session.created_at)
    for number, content in enumerate(words):
        seq = session.messages.count() + 1
        Message.objects.create(
            session=session,
            turn=turn,
            seq=seq,
            role=("user", "assistant")[number % 2],
            content=content,
        )
    Session.objects.filter(pk=session.pk).update(
        last_seq=session.messages.count(), message_count=session.messages.count()
    )
