"""What a chat wants of its answers is not asked of a summary, under any policy."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.presets import PRESETS
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    list_summary_calls,
    summarize_or_chat,
)
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel

pytestmark = pytest.mark.django_db(transaction=True)

WANTED = {
    "stop": ["END"],
    "logit_bias": {"5": 1},
    "response_format": {"type": "json_object"},
    "n": 1,
}


@pytest.mark.parametrize("policy", PRESETS)
def test_a_summary_call_has_none_of_them(
    session: Session, scripted: ScriptedModel, api: APIClient, policy: str
) -> None:
    use_policy(session, policy)
    path = f"/api/v1/sessions/{session.pk}"
    assert api.patch(path, {"params": WANTED}, format="json").status_code == 200
    fill_session(session)
    scripted.default = summarize_or_chat()
    run = api.post(f"{path}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run["reason"]
    calls = list_summary_calls(scripted)
    assert not [call.json for call in calls if WANTED.keys() & call.json.keys()]
    assert api.post(f"{path}/messages", {"content": "And now?"}).status_code == 201
    assert list_chat_calls(scripted)[-1].json["stop"] == ["END"]
