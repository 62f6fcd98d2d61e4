"""OpenAI's own client for one remembered session, and what that session stores."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from openai import OpenAI

from chatcore.base.runner import turn_runner
from chatcore.models import Message, Session
from chatcore.sessions import verification
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_client


@pytest.fixture
def client(live: Live, user: User, model: AiModel) -> OpenAI:
    """A client whose requests all name the same session."""
    return create_client(live.url, user, default_headers={"X-Session-Id": "trip"})


@pytest.fixture(autouse=True)
def verify_session(client: OpenAI) -> Any:
    """Check the invariants of the stored session after each test."""
    yield
    turn_runner.drain()
    for session in Session.objects.all():
        violations = verification.check_session(session.pk)
        assert not violations, violations


def user_says(*texts: str) -> list[Any]:
    return [{"role": "user", "content": text} for text in texts]


def build_history(*texts: str) -> list[Any]:
    """Return a history of these texts, the user's first."""
    return [
        {"role": "assistant" if index % 2 else "user", "content": text}
        for index, text in enumerate(texts)
    ]


def ask(client: OpenAI, messages: list[Any], **other: Any) -> Any:
    return client.chat.completions.create(model=MODEL, messages=messages, **other)


def load_messages() -> list[tuple[str, str]]:
    return list(Message.objects.filter(branch=None).order_by("seq").values_list("role", "content"))
