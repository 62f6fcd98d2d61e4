"""What the checks of a summary led to, on its card."""

import pytest
from playwright.sync_api import Page, expect

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.page_compactions import execute_run, fill_long
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.django_db(transaction=True)]

TRUE = "The user asked questions about everything, and the assistant gave answers."
INVENTED = "The deposit is 760 euros."


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        (Reply(text=TRUE), "checked"),
        (Reply(text=f"{TRUE} {INVENTED}"), "checked, repairs: 1"),
        (Reply(status=500, text="out of order"), "extract of the messages"),
    ],
    ids=["true", "repaired", "an extract"],
)
def test_the_card_says_in_a_few_words_what_was_done(
    page: Page, session: Session, scripted: ScriptedModel, reply: Reply, words: str
) -> None:
    fill_long(session)
    scripted.default = reply
    overrides = {
        "verify": {"checks": True, "repair": True, "extract": True},
        "ledger": {"ratio": 0.1},
    }
    run = engine.request_run(session.pk, trigger=CompactionRun.Trigger.MANUAL, overrides=overrides)
    execute_run(run)
    page.goto(f"/c/{session.pk}/")
    expect(page.locator(".card:not([data-superseded]) .card-checks")).to_have_text(words)
