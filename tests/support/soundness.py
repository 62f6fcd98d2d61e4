"""A check after every test of a module: the stored session holds what must hold."""

from typing import Any

import pytest

from chatcore.models import Session
from chatcore.sessions import verification


@pytest.fixture(autouse=True)
def sound(session: Session) -> Any:
    """Whatever a test does, the stored session holds what must hold."""
    yield
    session.refresh_from_db()
    assert list(verification.find_violations(session)) == []
