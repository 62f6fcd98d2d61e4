"""Many readers of events held by one server: no event lost or doubled over their reconnects, and no thread for each of them."""

import os
import threading

import pytest
from django.contrib.auth.models import User

from tests.benchmarks import sse
from tests.conftest import Live

READERS = 100
pytestmark = pytest.mark.django_db(transaction=True)


def test_a_hundred_readers_get_every_event_once_over_three_reconnects(live: Live, user: User) -> None:
    before = threading.active_count()
    held = sse.measure(live.url, os.getpid(), user, sse.tell, readers=READERS, streams=5, each=40, stay=0.5)
    assert (held.whole, held.events) == (READERS, 200), held
    assert held.threads - before < READERS, "each stream holds a thread"
