"""Runs with some knobs turned, a cheap model, and the models that wrote the summaries."""

from typing import Any

import pytest

from chatcore.models import Session
from compaction.models import CompactionRun
from compaction.runs import engine
from models_registry.models import AiModel
from tests.support.compaction_sessions import list_summary_calls
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

DOWN = Reply(status=500, text="out of order")


def compact(session: Session, **overrides: Any) -> CompactionRun:
    return engine.compact_now(session.pk, trigger="manual", overrides=overrides)


def models(scripted: ScriptedModel) -> list[str]:
    return [request.json["model"] for request in list_summary_calls(scripted)]


@pytest.fixture
def cheap(model: AiModel) -> AiModel:
    return AiModel.objects.create(
        provider=model.provider, name="cheap", context_window_size=32_000, max_output_tokens=700
    )
