"""Erase a person: the account with everything that belongs to it, and prove that it is gone.

The audit log keeps that it was done, and the person's number in what they did, without a name.
"""

from dataclasses import dataclass
from typing import Any

from allauth.usersessions.models import UserSession
from axes.models import AccessAttempt
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.db import transaction
from knox.models import AuthToken

from chatcore.accounts import audit
from chatcore.databases.erasure import ErasureChore
from chatcore.models import AuditEntry, Hold, Session
from chatcore.sessions.deletion import delete_session
from chatcore.sessions.discarding import purge_session
from chatcore.sessions.holds import OnHold
from chatcore.transfer.user_export import list_owned_tables


@dataclass(frozen=True)
class Erasure:
    """What was erased: rows by table before, and those that are left, which should be none."""

    rows: dict[str, int]
    rows_left: dict[str, int]


def erase_user(user: User, *, by: Any = None) -> Erasure:
    """Erase a user and everything of theirs; return the counts.

    It works in short transactions, sessions first, so it can be repeated where it was cut off.
    Raises OnHold for somebody who is on legal hold, or was and whose hold is still written down.
    """
    if Hold.objects.filter(user=user).exists():
        raise OnHold
    pk, name = user.pk, user.get_username()
    rows = _count_rows(pk)
    _shut_out(user)
    for session_id in list(Session.all_objects.filter(owner=pk).values_list("pk", flat=True)):
        delete_session(session_id)
        purge_session(session_id)
    with transaction.atomic():
        AccessAttempt.objects.filter(username=name).delete()
        LogEntry.objects.filter(object_id=str(pk), content_type__model="user").delete()
        User.objects.get(pk=pk).delete()
        audit.record(
            "user.erased",
            object_type="auth.user",
            object_id=pk,
            detail=f"{rows.get('chatcore.session', 0)} sessions",
            actor=by,
        )
    ErasureChore().erase()
    return Erasure(rows, {table: count for table, count in _count_rows(pk).items() if count})


def _shut_out(user: User) -> None:
    """Sign the person out everywhere, so that nothing new comes."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(is_active=False)
        AuthToken.objects.filter(user=user).delete()
        for row in UserSession.objects.filter(user=user):
            row.end()


def _count_rows(user_pk: Any) -> dict[str, int]:
    """Return how many rows of each table belong to the person with this number."""
    counts = {
        "auth.user": User.objects.filter(pk=user_pk).count(),
        "chatcore.session": Session.all_objects.filter(owner=user_pk).count(),
    }
    for model, field_name in list_owned_tables(User):
        if model is not AuditEntry:
            label = f"{model._meta.label_lower}.{field_name}"
            counts[label] = model._base_manager.filter(**{field_name: user_pk}).count()
    return counts
