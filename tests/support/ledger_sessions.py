"""Sessions with a ledger, whose summarizer forgets everything."""

import json

import pytest

from chatcore.models import Session
from compaction.memory.models import LedgerLine
from compaction.models import CompactionPolicy, CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import list_chat_calls, say, summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

RULE = "Never book a flight on a Sunday from now on."


@pytest.fixture
def session(session: Session, scripted: ScriptedModel) -> Session:
    """A session whose policy has a ledger and nothing else, and a summarizer that forgets all."""
    CompactionPolicy.objects.create(
        name="ledger", base="oneclaw", overrides={"ledger": {"ratio": 0.15}}
    )
    Session.objects.filter(pk=session.pk).update(policy="ledger")
    scripted.default = summarize_or_chat(
        summary=Reply(text="They talked about a trip to Lisbon and what to do there.")
    )
    session.refresh_from_db()
    return session


def compact(session: Session) -> CompactionRun:
    """Compact the session now, as a person would."""
    run = engine.compact_now(session.pk, trigger="manual")
    assert run.status == "applied", run.reason
    session.refresh_from_db()
    return run


def read_next_request(session: Session, scripted: ScriptedModel) -> str:
    """Say something, and return the request that was sent for it."""
    say(session)
    return json.dumps(list_chat_calls(scripted)[-1].json, ensure_ascii=False)


def list_texts(session: Session, **filters: object) -> list[str]:
    """Return the texts of the session's lines, in the order of their messages."""
    lines = LedgerLine.objects.filter(session=session, **filters).order_by("seq", "id")
    return list(lines.values_list("text", flat=True))
