"""A model whose window nobody knows: its provider refuses at 3,000 tokens, and the chat goes on."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.browsing import send_message
from tests.support.compaction_sessions import run_queued_compactions
from tests.support.openai_client import count_tokens
from tests.support.page_compactions import run_in_background
from tests.support.scripted_model import ScriptedModel, make_overflow
from tests.support.scripted_wire import Reply
from tests.support.served_product import ROOT

# It sends twenty messages, one after the other.
pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TAKES = 3_000
FIRST_FACT = "My bicycle is turquoise."
DETAILS = "We spoke of tires, chains and the long way round the lake. " * 15  # 225 tokens
SHOTS = ROOT / "test-results"


def answer(request: dict[str, Any]) -> Reply:
    """Answer as a model that knows what stands in the request, and nothing else."""
    tokens = count_tokens(request)
    if tokens > TAKES:
        return make_overflow(tokens, TAKES)
    text = str(request["messages"])
    knows_fact = "turquoise" in text
    if "<transcript>" in text:
        told = "The user said: my bicycle is turquoise. " if knows_fact else ""
        return Reply(text=f"{told}They plan a tour round the lake and look after the chain.")
    if "What color" in str(request["messages"][-1]["content"]):
        return Reply(text="It is turquoise." if knows_fact else "I do not know.")
    return Reply(text=f"Noted. {DETAILS}")


def test_twenty_messages_are_answered_and_the_first_fact_is_known_at_the_end(
    page: Page, session: Session, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=None)
    scripted.default = answer
    page.goto(f"/c/{session.pk}/")
    meter = page.locator(".meter-used")
    answers = page.locator(".answer[data-status=complete]")
    for number in range(1, 21):
        question = "What color is my bicycle?" if number == 20 else f"Note {number}. {DETAILS}"
        send_message(page, f"{FIRST_FACT} {question}" if number == 1 else question)
        expect(page.locator(".message.user")).to_have_count(number)
        expect(answers).to_have_count(number)
        run_in_background(run_queued_compactions).join()  # as a worker does beside it
        if number == 1:
            expect(meter).to_have_text(re.compile(r"^[\d,]+ tokens$"))
    expect(answers.last).to_contain_text("It is turquoise.")
    assert session.messages.filter(role="assistant", status="complete").count() == 20
    refusals = [request for request in scripted.requests if count_tokens(request.json) > TAKES]
    assert len(refusals) == 1, "the window was learned from the first refusal"

    expect(meter).to_have_text(re.compile(" full$"))
    page.locator(".meter-button").click()
    expect(page.locator("#context")).to_be_visible()
    expect(page.locator("#context")).to_contain_text("How much the model can read was learned")
    expect(page.locator(".context-total")).to_contain_text(" of 3,000 tokens, ")
    expect(page.locator(".card:not([data-superseded])")).to_have_count(1)
    SHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SHOTS / "learned-window.png")
    page.reload()
    expect(page.locator(".context-total")).to_contain_text(" of 3,000 tokens, ")
