"""Memory as an app that was absent: what was said before is read when it is back."""

from pathlib import Path

import pytest
from django.core.management import call_command

from chatcore.models import Session
from compaction.memory.models import LedgerLine
from compaction.models import SessionState
from tests.support.compaction_sessions import say
from tests.support.ledger_sessions import RULE, compact, list_texts, session

__all__ = ["session"]
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.slow
def test_messages_are_read_again_where_the_lines_are_gone(session: Session, tmp_path: Path) -> None:
    say(session, RULE)
    for number in range(6):
        say(session, f"Tell me about day {number}. " + "It is a long story. " * 60)
    compact(session)
    said = list_texts(session)
    assert RULE in said
    try:
        call_command("drop_app", "memory", tmp_path / "rows.gz", yes=True, verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
    assert not LedgerLine.objects.exists()
    assert SessionState.objects.get(pk=session.pk).ledger_seq == 0
    say(session, "And on Monday?")
    assert RULE in list_texts(session)
