"""An answer while it is written: the colors of its code, and the time of thinking."""

import re

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from tests.support.browsing import PausedChunks, send_message
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]


def test_code_has_its_colors_while_it_is_written(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    chunks = PausedChunks("```python\n", *(f"x{n} = {n}\n" for n in range(70)), "y = 1\n```\n")
    scripted.script(Reply(chunks=chunks, chunk_delay=0.03))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Code")
    expect(page.locator(".answer .hljs-number").first).to_have_text("0")
    expect(page.locator(".answer")).to_have_attribute("data-status", "streaming")
    chunks.resume.set()
    expect(page.locator(".answer .hljs-number")).to_have_count(71)


def test_the_time_of_thinking_is_counted(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="At last.", reasoning="Let me see."))
    page.goto(f"/c/{session.pk}/")
    send_message(page, "Well?")
    expect(page.locator(".reasoning summary")).to_have_text(re.compile(r"Thought for \d+ s"))
