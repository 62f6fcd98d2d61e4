"""A session's threshold above 1 is a number of tokens, with which the protected tail shrinks."""

import pytest
from rest_framework.test import APIClient

from chatcore.models import Session
from compaction.core.presets import PRESETS
from compaction.sessions.session_context import load_session_context
from models_registry.models import AiModel
from tests.support.frozen_talk import use_policy

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("policy", PRESETS)
@pytest.mark.parametrize("tokens", [6000, 40_000])
def test_a_number_of_tokens_is_the_threshold_of_this_chat(
    session: Session, model: AiModel, api: APIClient, policy: str, tokens: int
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=128_000)
    use_policy(session, policy)
    usual = load_session_context(session.pk)
    response = api.patch(
        f"/api/v1/sessions/{session.pk}", {"compact_threshold": tokens}, format="json"
    )
    assert (response.status_code, response.json()["compact_threshold"]) == (200, tokens)
    context = load_session_context(session.pk)
    assert usual is not None
    assert usual.budget is not None
    assert context is not None
    assert context.budget is not None
    assert context.budget.threshold == tokens
    assert context.budget.protected_tokens <= min(tokens, usual.budget.protected_tokens)


@pytest.mark.parametrize("threshold", [-1, "6000", True, 1.5, 2, 1e12])
def test_other_values_are_refused(session: Session, api: APIClient, threshold: object) -> None:
    response = api.patch(
        f"/api/v1/sessions/{session.pk}", {"compact_threshold": threshold}, format="json"
    )
    assert response.status_code == 400


@pytest.mark.parametrize("policy", PRESETS)
def test_a_number_that_no_request_reaches_is_refused_when_it_is_set(
    session: Session, model: AiModel, api: APIClient, policy: str
) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=128_000)
    use_policy(session, policy)
    path = f"/api/v1/sessions/{session.pk}"
    for tokens in (128_000, 200_000):
        response = api.patch(path, {"compact_threshold": tokens})
        assert response.status_code == 400
        assert "compact_threshold" in str(response.json())
    new_chat = {"model": str(model), "policy": policy, "compact_threshold": 128_000}
    assert api.post("/api/v1/sessions", new_chat).status_code == 400
    # What was set for a larger model does not keep anybody from a smaller one.
    assert api.patch(path, {"compact_threshold": 60_000}).status_code == 200
    small = AiModel.objects.create(
        provider=model.provider, name="small", context_window_size=32_000
    )
    assert api.patch(path, {"model": str(small)}).status_code == 200
