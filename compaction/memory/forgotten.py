"""Find in a session's messages what its user wants forgotten, under every policy."""

from functools import reduce
from operator import or_
from uuid import UUID

from django.db.models import Q

from chatcore.models import Message
from compaction.memory.core.ledger.corrections import find_change, get_place
from compaction.memory.core.ledger.forgetting import list_verb_parts
from compaction.memory.core.ledger.removal import Removal, TakenBack, read_statements
from compaction.memory.ledger import store
from compaction.memory.models import LedgerLine

MAX_MESSAGES = 5_000  # of the user, the newest ones; nothing older is looked through
MAX_CHANGES = 20  # corrections and requests to forget that a summarizer reads
NOTHING_LEFT = "The user asked to forget what was said before."
CORRECTIONS_HEADING = "Corrected by the user since:"
MAX_READ = 1_000  # of them, before a summary
MAX_CHARS = 20_000  # of each


def load_removal(session_id: UUID, *, up_to_seq: int | None = None) -> Removal:
    """Return what the user wants forgotten of the messages up to this one.

    Takes one query, and two more where something may be.
    """
    messages = Message.objects.filter(session=session_id, role=Message.Role.USER)
    messages = messages.exclude_superseded()
    if up_to_seq is not None:
        messages = messages.filter(seq__lte=up_to_seq)
    asks = reduce(or_, (Q(content__icontains=part) for part in list_verb_parts()))
    candidates = messages.filter(asks).order_by("seq").values_list("seq", "content")
    if not any(find_change(line.text) == "forgetting" for line in read_statements(candidates)):
        return Removal(())
    rows = messages.order_by("-seq").values_list("seq", "content")[:MAX_MESSAGES]
    statements = read_statements((seq, text[:MAX_CHARS]) for seq, text in reversed(rows))
    return Removal(statements, _list_dropped_places(session_id))


def load_taken_back(session_id: UUID) -> TakenBack:
    """Return what the user took back in the newest messages of a session. Takes two queries."""
    messages = Message.objects.filter(session=session_id, role=Message.Role.USER)
    rows = messages.exclude_superseded().order_by("-seq").values_list("seq", "content")
    newest = [(seq, text[:MAX_CHARS]) for seq, text in rows[:MAX_READ]]
    return TakenBack(read_statements(reversed(newest)), _list_dropped_places(session_id))


def _list_dropped_places(session_id: UUID) -> set[tuple[int, str]]:
    """Return the places of lines that the user dropped: a request among them holds no longer."""
    rows = LedgerLine.objects.filter(session=session_id, status=LedgerLine.Status.DROPPED)
    return {get_place(store.to_core_line(row)) for row in rows.exclude(text="")}
