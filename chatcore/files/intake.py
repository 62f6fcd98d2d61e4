"""Taking files in: looked into rather than believed, kept until they are sent or a day has passed."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from chatcore.files import images, pdf
from chatcore.files import text as file_text
from chatcore.files.names import label
from chatcore.models import Attachment, Message, Session
from chatcore.sessions.token_estimate import estimate_tokens

MAX_BYTES = 10 * 1024 * 1024
MAX_FILES = 20  # that one message carries
MAX_WAITING = 2 * MAX_FILES  # in one session, uploaded and not sent
KEPT_UNSENT = timedelta(days=1)


class NotTaken(Exception):
    """A file that is not of a kind the house knows, or a broken one; the text is for whoever sent it."""


class TooManyWaiting(Exception):
    """The session has as many files as it may that were uploaded and not sent."""


class Unavailable(Exception):
    """Of these files, some are not the session's, were sent already, or are gone."""

    def __init__(self, position: int) -> None:
        super().__init__("There is no such file in this session that was not sent yet.")
        self.position = position


def store(session: Session, *, name: str, data: bytes, waits: bool = True) -> Attachment:
    """Take a file in. What it is, its bytes say; its name is a label. Raises NotTaken and TooManyWaiting.

    `waits`: it is uploaded to be sent later, and counted with the others that are.
    """
    if waits and Attachment.objects.filter(session=session, message=None).count() >= MAX_WAITING:
        raise TooManyWaiting(
            f"{MAX_WAITING} files of this session were uploaded and not sent; send or delete some first."
        )
    taken = look(name=name, data=data)
    taken.session = session
    taken.save(force_insert=True)
    return taken


def look(*, name: str, data: bytes) -> Attachment:
    """A file as it would be stored, of no session yet; looking into a PDF file takes seconds. Raises NotTaken."""
    if len(data) > MAX_BYTES:
        raise NotTaken(f"A file has at most {MAX_BYTES // 1024**2} MB.")
    shown = label(name)
    media_type, text, tokens = _looked_into(shown, data)
    return Attachment(
        name=shown,
        media_type=media_type,
        size=len(data),
        data=b"" if text.encode() == data else data,  # the text is all of it
        text=text,
        token_estimate=tokens,
    )


def bind(message: Message, attachments: Sequence[UUID], *, before: Message | None = None) -> None:
    """Give a stored message its files, in the transaction that stores it. Raises Unavailable; then nothing may be committed.

    Those of `before`, of which it is another version, are copied.
    """
    for position, attachment in enumerate(attachments):
        if before and before.attachments.filter(pk=attachment, kind=Attachment.Kind.FILE).exists():
            carry_over(before, message, only=attachment)
            continue
        free = Attachment.objects.filter(
            pk=attachment, session=message.session_id, message=None, kind=Attachment.Kind.FILE
        )
        if not free.update(
            message=message, created_at=timezone.now()
        ):  # in the order they were given
            raise Unavailable(position)


def carry_over(before: Message, message: Message, *, only: UUID | None = None) -> None:
    """Give a message the files of the one of which it is another version, or one of them; both keep theirs."""
    kept = before.attachments.filter(kind=Attachment.Kind.FILE)
    for attachment in kept.filter(pk=only) if only else kept:
        attachment.pk, attachment.message, attachment.created_at = uuid4(), message, timezone.now()
        attachment.save(force_insert=True)


def prune() -> int:
    """Forget what was uploaded a day ago and never sent; how many files."""
    with transaction.atomic():
        return Attachment.objects.filter(
            message=None, created_at__lt=timezone.now() - KEPT_UNSENT
        ).delete()[0]


def _looked_into(name: str, data: bytes) -> tuple[str, str, int]:
    """Media type, text and tokens."""
    if not data:
        raise NotTaken("The file is empty.")
    try:
        picture = images.read(data)
        text = _pdf_text(data) if picture is None and pdf.is_pdf(data) else None
    except (images.BrokenImage, pdf.UnreadablePdf) as wrong:
        raise NotTaken(str(wrong)) from None
    if picture:
        return picture.media_type, "", picture.tokens
    if text is not None:
        return "application/pdf", text, estimate_tokens(len(text))
    text = file_text.read(data)
    if text is None:
        raise NotTaken(
            "Only texts, PDF files and images (PNG, JPEG, GIF, WebP) can be attached; this is something else."
        )
    return file_text.media_type(name), text, estimate_tokens(len(text))


def _pdf_text(data: bytes) -> str:
    if not connection.in_atomic_block:
        close_old_connections()  # reading takes seconds, and others need a connection out of the same pool
    return pdf.read(data)
