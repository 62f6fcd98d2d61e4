"""A conversation that the product itself holds: turns over REST with a scripted model."""

from rest_framework.test import APIClient

from chatcore.models import Session
from measure.benchmarks.sample_messages import list_ten_messages
from measure.benchmarks.sample_sessions import get_user
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

TURNS = 50


def hold_talk(scripted: ScriptedModel, model: AiModel) -> Session:
    """Hold a talk of TURNS questions and answers of usual lengths, and return its session."""
    user = get_user()
    session = Session.objects.create(owner=user, model=model, auto_compact=False)
    api = APIClient()
    api.force_authenticate(user)
    texts = [fields["content"] for fields in list_ten_messages() if "tool_calls" not in fields]
    for number in range(TURNS):
        question = f"{number}. {texts[0]}"
        scripted.script(Reply(text=texts[number % len(texts)]))
        response = api.post(
            f"/api/v1/sessions/{session.pk}/messages",
            {"content": question, "stream": False},
            format="json",
        )
        assert response.status_code < 300, response.content
    return session
