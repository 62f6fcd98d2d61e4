"""A model that chats and writes summaries, the runs it causes, and the messages it is sent."""

from typing import Any

import pytest

from compaction.models import CompactionRun
from tests.support.compaction_sessions import list_chat_calls, summarize_or_chat
from tests.support.scripted_model import ScriptedModel


@pytest.fixture(autouse=True)
def script_summaries(scripted: ScriptedModel) -> None:
    scripted.default = summarize_or_chat()


def triggers() -> list[str]:
    return list(CompactionRun.objects.order_by("created_at").values_list("trigger", flat=True))


def load_sent_messages(scripted: ScriptedModel, index: int = -1) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = list_chat_calls(scripted)[index].json["messages"]
    return messages
