"""A check after every test of a module: the stored session holds what must hold."""

from typing import Any

import pytest

from chatcore.models import Session
from chatcore.sessions import verification


@pytest.fixture(autouse=True)
def sound(session: Session) -> Any:
    """Whatever a test does, the stored session holds what must hold."""
    yield
    violations = verification.check_session(session.pk)
    assert not violations, violations
