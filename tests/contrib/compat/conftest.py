"""Fixtures of the APIs of others."""

import pytest
from django.conf import settings


@pytest.fixture
def keep_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Answer without a session whatever a client sends."""
    monkeypatch.setitem(settings.CHATCORE, "KEEP_PROGRAM_CONVERSATIONS", False)
