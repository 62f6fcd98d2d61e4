"""Taking files in: looked into rather than believed, kept until they are sent or a day has passed."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID, uuid4

from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from chatcore.files import images, pdf, text
from chatcore.files.names import clean_file_name
from chatcore.models import Attachment, Message, Session
from chatcore.sessions.token_estimate import estimate_tokens

MAX_BYTES = 10 * 1024 * 1024
MAX_FILES = 20  # that one message carries
MAX_UNSENT_FILES = 2 * MAX_FILES  # in one session, uploaded and not sent
UNSENT_LIFETIME = timedelta(days=1)


class FileRejected(Exception):
    """A file that is not of a kind the house knows, or a broken one; the text is for whoever sent it."""


class TooManyUnsentFiles(Exception):
    """The session has as many files as it may that were uploaded and not sent."""


class FileUnavailable(Exception):
    """Of these files, some are not the session's, were sent already, or are gone."""

    def __init__(self, position: int) -> None:
        super().__init__("There is no such file in this session that was not sent yet.")
        self.position = position


def store_file(session: Session, *, name: str, data: bytes, is_pending: bool = True) -> Attachment:
    """Take a file in. What it is, its bytes say; its name is a label. Raises NotTaken and TooManyWaiting.

    `waits`: it is uploaded to be sent later, and counted with the others that are.
    """
    if (
        is_pending
        and Attachment.objects.filter(session=session, message=None).count() >= MAX_UNSENT_FILES
    ):
        raise TooManyUnsentFiles(
            f"{MAX_UNSENT_FILES} files of this session were uploaded and not sent; send or delete some first."
        )
    attachment = inspect_file(name=name, data=data)
    attachment.session = session
    attachment.save(force_insert=True)
    return attachment


def inspect_file(*, name: str, data: bytes) -> Attachment:
    """A file as it would be stored, of no session yet; looking into a PDF file takes seconds. Raises NotTaken."""
    if len(data) > MAX_BYTES:
        raise FileRejected(f"A file has at most {MAX_BYTES // 1024**2} MB.")
    file_name = clean_file_name(name)
    media_type, file_text, tokens = _inspect_content(file_name, data)
    return Attachment(
        name=file_name,
        media_type=media_type,
        size=len(data),
        data=b"" if file_text.encode() == data else data,  # the text is all of it
        text=file_text,
        token_estimate=tokens,
    )


def bind_files(
    message: Message, attachment_ids: Sequence[UUID], *, previous_version: Message | None = None
) -> None:
    """Give a stored message its files, in the transaction that stores it. Raises Unavailable; then nothing may be committed.

    Those of `before`, of which it is another version, are copied.
    """
    for position, attachment_id in enumerate(attachment_ids):
        if (
            previous_version
            and previous_version.attachments.filter(
                pk=attachment_id, kind=Attachment.Kind.FILE
            ).exists()
        ):
            copy_files(previous_version, message, attachment_id=attachment_id)
            continue
        unsent_rows = Attachment.objects.filter(
            pk=attachment_id, session=message.session_id, message=None, kind=Attachment.Kind.FILE
        )
        if not unsent_rows.update(
            message=message, created_at=timezone.now()
        ):  # in the order they were given
            raise FileUnavailable(position)


def copy_files(
    previous_version: Message, message: Message, *, attachment_id: UUID | None = None
) -> None:
    """Give a message the files of the one of which it is another version, or one of them; both keep theirs."""
    rows = previous_version.attachments.filter(kind=Attachment.Kind.FILE)
    for attachment in rows.filter(pk=attachment_id) if attachment_id else rows:
        attachment.pk, attachment.message, attachment.created_at = uuid4(), message, timezone.now()
        attachment.save(force_insert=True)


def prune_unsent_files() -> int:
    """Forget what was uploaded a day ago and never sent; how many files."""
    with transaction.atomic():
        return Attachment.objects.filter(
            message=None, created_at__lt=timezone.now() - UNSENT_LIFETIME
        ).delete()[0]


def _inspect_content(name: str, data: bytes) -> tuple[str, str, int]:
    """Media type, text and tokens."""
    if not data:
        raise FileRejected("The file is empty.")
    try:
        image = images.identify_image(data)
        file_text = _extract_pdf_text(data) if image is None and pdf.is_pdf(data) else None
    except (images.BrokenImage, pdf.UnreadablePdf) as error:
        raise FileRejected(str(error)) from None
    if image:
        return image.media_type, "", image.token_estimate
    if file_text is not None:
        return "application/pdf", file_text, estimate_tokens(len(file_text))
    file_text = text.decode_text(data)
    if file_text is None:
        raise FileRejected(
            "Only texts, PDF files and images (PNG, JPEG, GIF, WebP) can be attached; this is something else."
        )
    return text.guess_media_type(name), file_text, estimate_tokens(len(file_text))


def _extract_pdf_text(data: bytes) -> str:
    if not connection.in_atomic_block:
        close_old_connections()  # reading takes seconds, and others need a connection out of the same pool
    return pdf.extract_text(data)
