"""A signed-in client of the pages, their HTML, and the chat of someone else."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatcore.models import Message, Session
from models_registry.models import AiModel


@pytest.fixture
def signed_in(client: Client, user: User) -> Client:
    client.force_login(user)
    return client


@pytest.fixture
def others(model: AiModel) -> Session:
    bob = User.objects.create_user("bob", password="bob's password")
    session = Session.objects.create(owner=bob, model=model, title="Bob's plans")
    say(session, "user", "A secret")
    return session


def say(session: Session, role: str, content: str, **fields: Any) -> Message:
    seq = session.messages.count() + 1
    return Message.objects.create(session=session, seq=seq, role=role, content=content, **fields)


def get_html(client: Client, path: str) -> str:
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()
