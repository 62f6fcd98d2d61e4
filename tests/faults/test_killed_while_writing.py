"""A process is killed during a long import, fork or deletion: nobody sees a half of anything."""

import os
import signal
import subprocess
import sys
from datetime import timedelta

import pytest
from django.conf import settings
from django.utils import timezone

from chatcore.models import Message, Session
from chatcore.search.query import search_messages
from chatcore.sessions import drafts, verification
from chatcore.sessions.deletion import purge_due_sessions
from chatcore.transfer import importer
from tests.support.database import build_database_url
from tests.support.worker_processes import ROOT

pytestmark = [pytest.mark.faults, pytest.mark.django_db(transaction=True)]

HISTORY = [
    {"role": "user", "content": f"{number}: " + "Swordfish. " * 100} for number in range(300)
]
# The process kills itself, because only so the moment is always the same. SIGKILL runs no handler
# and no `finally`, whoever sends it.
KILL_ITSELF = """
import os, signal
from chatcore.base.databases.short_transactions import ShortTransactions
open_transaction = ShortTransactions.open_transaction
count = 0
def die():
    global count
    count += 1
    if count == 4:
        os.kill(os.getpid(), signal.SIGKILL)
class DyingInside:
    def __init__(self, opened):
        self.opened = opened
    def __enter__(self):
        return self.opened.__enter__()
    def __exit__(self, *error):
        die()
        return self.opened.__exit__(*error)
# All transactions stay as small as the first, so the fourth is in the middle on any machine.
ShortTransactions._learn = lambda self, weight, seconds: None
if {moment!r} == "between two transactions":
    ShortTransactions._learn = lambda self, weight, seconds: die()
else:
    ShortTransactions.open_transaction = lambda self, weight: DyingInside(
        open_transaction(self, weight)
    )
from chatcore.models import Session
from tests.faults.test_killed_while_writing import HISTORY
session = Session.objects.get(pk={session!r})
"""
ACTS = {
    "import into a session": """
from chatcore.transfer.importer import import_messages
import_messages(session, HISTORY)
""",
    "import of a session": """
from chatcore.transfer.importer import import_session
import_session(session.owner, {"format": "chatcore-session-1", "messages": HISTORY})
""",
    "fork": """
from chatcore.turns.forks import fork_session
fork_session(session.messages.order_by("seq").last())
""",
    "deletion": """
from chatcore.sessions.deletion import delete_session
delete_session(session.pk)
""",
}


def run_until_it_dies(script: str) -> None:
    environment = os.environ | {
        "CHATCORE_DATABASE_URL": build_database_url(),
        "CHATCORE_SECRET_KEY": settings.SECRET_KEY,
        "CHATCORE_KEY_ENCRYPTION_KEYS": ",".join(settings.CHATCORE["KEY_ENCRYPTION_KEYS"]),
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
    }
    command = [sys.executable, str(ROOT / "manage.py"), "shell", "-c", script]
    process = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert process.returncode == -signal.SIGKILL, process.stderr


@pytest.mark.parametrize(
    ("act", "moment"),
    [
        *((act, "between two transactions") for act in ACTS),
        pytest.param("import of a session", "inside a transaction", marks=pytest.mark.slow),
    ],
)
def test_a_kill_in_the_middle_leaves_nothing_half_visible(
    session: Session, act: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    importer.import_messages(session, HISTORY)
    script = KILL_ITSELF.format(moment=moment, session=str(session.pk))
    run_until_it_dies(script + ACTS[act])

    is_deletion = act == "deletion"
    assert list(Session.objects.all()) == ([] if is_deletion else [session])
    assert Session.all_objects.exclude(discard_at=None).count() == 1
    visible_messages = Message.objects.filter(session__in=Session.objects.all())
    assert visible_messages.count() == (0 if is_deletion else 300)
    assert Message.objects.count() not in (0, 300, 600)  # it did die in the middle
    hits = search_messages(session.owner, "swordfish", 500)
    assert {hit.session_id for hit in hits} == (set() if is_deletion else {session.pk})

    later = timezone.now() + drafts.DRAFT_LEASE + timedelta(seconds=1)
    monkeypatch.setattr(timezone, "now", lambda: later)
    assert purge_due_sessions() == 1
    assert not Session.all_objects.exclude(discard_at=None).exists()
    assert Message.objects.count() == (0 if is_deletion else 300)
    assert [
        violation
        for each in Session.objects.all()
        for violation in verification.find_violations(each)
    ] == []
