"""Read-only links to chats: made and revoked by their owners, and found by their secret part."""

from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from chatcore.accounts import audit
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.keeping import refuse_if_kept
from chatcore.contrib.sharing.models import Share, ShareQuerySet, digest_token
from chatcore.models import Message, Session
from chatcore.transfer.transcript import list_spans, select_current_messages

MAX_SHARES = 1_000  # open links of a user
MAX_DAYS = 3650


class SharingRefused(Exception):
    """A chat cannot be shared; the text is for the user."""


class TooManyShares(SharingRefused):
    """The owner has as many open links as there may be."""

    def __init__(self) -> None:
        super().__init__(f"There are already {MAX_SHARES:,} links, the most. Revoke some.")


def is_sharing_allowed() -> bool:
    """Return whether this house lets people share chats (CHATCORE_SHARING)."""
    return bool(settings.CHATCORE["SHARING"])


def create_share(
    session: Session, *, with_tools: bool = False, with_files: bool = False, days: int | None = None
) -> Share:
    """Share what a chat holds now; `token` of the row is the secret part of its link.

    Raises SharingRefused, Kept if the owner's words must stay, and Session.DoesNotExist.
    """
    if not is_sharing_allowed():
        raise SharingRefused("Sharing is off on this server.")
    refuse_if_kept(session.owner_id)
    with transaction.atomic():
        lock_person(session.owner_id)
        if Share.objects.filter_open().filter(owner=session.owner_id).count() >= MAX_SHARES:
            raise TooManyShares
        session = Session.objects.lock(session.pk)
        messages = select_current_messages(session).exclude(role=Message.Role.SYSTEM)
        spans = list_spans(messages)
        if not spans:
            raise SharingRefused("There is nothing to share yet.")
        share = Share(
            owner_id=session.owner_id,
            session=session,
            title=session.title,
            spans=spans,
            last_seq=spans[-1][1],
            with_tools=with_tools,
            with_files=with_files,
            expires_at=timezone.now() + timedelta(days=days) if days else None,
        )
        share.digest = digest_token(share.token)
        share.save(force_insert=True)
        audit.record("share.made", target=session, detail=str(share.pk))
    return share


def revoke_shares(owner: object, **which: object) -> int:
    """End those of a user's links that the filters name; return how many."""
    with transaction.atomic():
        shares = list_shares(owner).filter(**which).select_for_update(of=("self",))
        rows = list(shares.only("pk", "session_id"))
        Share.objects.filter(pk__in=[row.pk for row in rows]).update(revoked_at=timezone.now())
        for row in rows:
            audit.record(
                "share.revoked",
                object_type=Session._meta.label_lower,
                object_id=row.session_id,
                detail=str(row.pk),
            )
    return len(rows)


def forget_titles(session: Session, **_: object) -> None:
    """Forget former titles of a session, which may quote a message that is being deleted."""
    Share.objects.filter(session=session).exclude(title=F("session__title")).update(title="")


def list_shares(owner: Any) -> ShareQuerySet:
    """Return a user's links that still work or would, newest first."""
    return Share.objects.filter(owner=owner, revoked_at=None, session__discard_at=None)


def find_share(token: str) -> Share | None:
    """Return the share of a link if it works, with its session."""
    if not is_sharing_allowed():
        return None
    shares = Share.objects.filter_open().select_related("session")
    return shares.filter(digest=digest_token(token)).first()
