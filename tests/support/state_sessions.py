"""A session under Lota's policy, which has state and memory, and the deltas of its runs."""

import json
from typing import Any

import pytest

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from compaction.systems.lota import store as state
from tests.support.compaction_sessions import SUMMARY, fill_session, summarize_or_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

DELTA = {
    "decisions": {"add": ["Stay at the Lis"]},
    "tasks": {"add": ["Book a flight"]},
    "memory": ["Alice likes tea."],
}


@pytest.fixture
def session(session: Session, scripted: ScriptedModel) -> Session:
    """Set Lota's policy. It has state and memory, and its tail is always six messages."""
    Session.objects.filter(pk=session.pk).update(policy="lota")
    session.refresh_from_db()
    scripted.default = summarize_or_chat()
    return session


def reply_with_delta(delta: Any, summary: str = SUMMARY) -> Reply:
    return Reply(
        text=f"{summary}\n\n```json\n{delta if isinstance(delta, str) else json.dumps(delta)}\n```"
    )


def compact(
    session: Session, scripted: ScriptedModel, *replies: Reply, **options: Any
) -> CompactionRun:
    fill_session(session, messages=8)
    scripted.script(*replies)
    return engine.compact_now(session.pk, trigger="manual", **options)


def list_items(session: Session, section: str) -> tuple[str, ...]:
    return state.load_structured_state(session.pk).sections[section]
