"""Delete a session with everything in it."""

from uuid import UUID

from django.db import transaction

from chatcore.models import Attachment, ContextEdit, Message, Session, SessionEvent, Turn
from chatcore.turns import leases, service


def delete_session(session_id: UUID) -> None:
    """Delete a session and all its rows; an answer that is being generated is stopped."""
    is_deleted = False
    while not is_deleted:
        service.cancel_turn(session_id)
        is_deleted = _delete_with_turns(session_id)


def _delete_with_turns(session_id: UUID) -> bool:
    """Delete the session unless a turn has begun meanwhile; return False in that case."""
    with transaction.atomic():
        locked_turn_count = leases.lock_turns(Turn.objects.filter(session_id=session_id))
        try:
            session = Session.objects.lock(session_id)
        except Session.DoesNotExist:
            return True
        # A turn that began between the two locks is not locked. Its writer may already hold the
        # turn and wait for the session, so deleting the turn now would make both wait forever.
        # Leaving the transaction releases the locks; the next attempt locks that turn first.
        if session.turns.count() != locked_turn_count:
            return False
        _delete_rows(session)
        session.delete()
        return True


def _delete_rows(session: Session) -> None:
    # Django's cascade would first load all rows. With 100,000 of them, that holds a database lock
    # longer than others wait for it, so the large tables are emptied by one statement each.
    for model in (SessionEvent, ContextEdit, Attachment, Message):
        rows = model._default_manager.filter(session=session).order_by()
        rows._raw_delete(rows.db)
