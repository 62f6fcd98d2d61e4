"""A session under Lota's policy with its own size, and a summary in its three sections."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from tests.support.compaction_sessions import (
    summarize_or_chat,
)
from tests.support.preset_sessions import PROTOCOLS, set_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

SECTIONS = (
    "KEY FACTS:\n- Lisbon in May.\nCONVERSATION FLOW:\n- They spoke of hotels.\n"
    "OPEN THREADS:\n- The flight."
)


@pytest.fixture
def workstream(session: Session, scripted: ScriptedModel) -> Session:
    """A session with Lota's context size of 200,000 tokens."""
    scripted.default = summarize_or_chat(summary=Reply(text=SECTIONS))
    return set_policy(session, "lota", scripted, "openai", context_window_size=200_000)


@pytest.fixture(params=mark_others_slow(PROTOCOLS))
def each_protocol(
    request: pytest.FixtureRequest, workstream: Session, scripted: ScriptedModel
) -> Session:
    """The workstream, once for each protocol."""
    return set_policy(workstream, "lota", scripted, request.param, context_window_size=200_000)


def compact(session: Session, **overrides: Any) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides=overrides)
