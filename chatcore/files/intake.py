"""Accept uploaded files: inspect their bytes, store them, and attach them to messages.

The type of a file is what its bytes say, never its name or what the client claims. A file that is
not sent within a day is deleted.
"""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import PurePosixPath
from uuid import UUID, uuid4

from django.db import close_old_connections, connection, transaction
from django.utils import timezone

from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.token_estimate import estimate_tokens
from chatcore.extension import exclude_kept
from chatcore.files import images, office, output_store, pdf, photographs, text
from chatcore.files.child_process import UnreadableFile
from chatcore.files.names import clean_file_name
from chatcore.models import Attachment, Message, OutputFile, Session

MAX_BYTES = 10 * 1024 * 1024
MAX_FILES = 20  # of one message
MAX_UNSENT_FILES = 2 * MAX_FILES  # of one session
UNSENT_LIFETIME = timedelta(days=1)


class FileRejected(Exception):
    """A file of an unknown type, or a damaged one; the text is for the user who sent it."""


class TooManyUnsentFiles(Exception):
    """The session already has MAX_UNSENT_FILES files that were uploaded and not sent."""


class FileUnavailable(Exception):
    """A file that is not the session's, was sent already, or is gone.

    `position` is its index in the list of the message's files.
    """

    def __init__(self, position: int) -> None:
        super().__init__("There is no such file in this session that was not sent yet.")
        self.position = position


def store_file(session: Session, *, name: str, data: bytes, is_pending: bool = True) -> Attachment:
    """Inspect a file and store it in the session.

    `is_pending` means that it will be sent with a later message, and counts as unsent until then.
    Raises FileRejected and TooManyUnsentFiles.
    """
    if is_pending:
        _refuse_more(session)
    attachment = inspect_file(name=name, data=data, owner_id=session.owner_id)
    attachment.session = session
    if not connection.in_atomic_block:
        close_old_connections()  # the store may be a slow bucket
    stored_object = output_store.put_data_away(attachment)
    with transaction.atomic():
        if is_pending:  # another upload may have come meanwhile
            lock_person(session.owner_id)
            _refuse_more(session)
        attachment.save(force_insert=True)
        if stored_object:
            stored_object.attach(attachment)
    return attachment


def inspect_file(*, name: str, data: bytes, owner_id: object = None) -> Attachment:
    """Return the unsaved attachment for a file, without a session.

    This may take seconds for a PDF or office file, or a photograph; files of one owner are read one
    after the other. A photograph that no provider takes is stored as one that they take. Raises
    FileRejected.
    """
    if len(data) > MAX_BYTES:
        raise FileRejected(f"A file has at most {MAX_BYTES // 1024**2} MB.")
    file_name = clean_file_name(name)
    if not data:
        raise FileRejected("The file is empty.")
    try:
        if photographs.is_foreign(data):
            file_name, data = _convert_photograph(file_name, data, owner_id)
        try:
            image = images.identify_image(data)
        except images.LargeImage as error:
            try:
                file_name, data = _convert_photograph(file_name, data, owner_id)
            except UnreadableFile:
                raise error from None  # it says how large the image is
            image = images.identify_image(data)
        document = None if image else _read_document(data, owner_id)
    except (images.BrokenImage, UnreadableFile) as error:
        raise FileRejected(str(error)) from None
    if image:
        return _build_image(file_name, data, image)
    file_text, media_type = document or _decode_text(file_name, data)
    return Attachment(
        name=file_name,
        media_type=media_type,
        size=len(data),
        data=b"" if file_text.encode() == data else data,  # a plain text is not stored twice
        text=file_text,
        token_estimate=estimate_tokens(len(file_text)),
    )


def bind_files(
    message: Message, attachment_ids: Sequence[UUID], *, previous_version: Message | None = None
) -> None:
    """Attach files to a stored message, inside the transaction that stores it.

    Files of `previous_version`, which this message replaces, are copied. Raises FileUnavailable;
    the transaction must then be rolled back.
    """
    for position, attachment_id in enumerate(attachment_ids):
        if previous_version and _has_file(previous_version, attachment_id):
            copy_files(previous_version, message, attachment_id=attachment_id)
            continue
        unsent_row = Attachment.objects.filter(
            pk=attachment_id, session=message.session_id, message=None, kind=Attachment.Kind.FILE
        )
        # Files are shown in the order of `created_at`, which becomes the order of this list. The
        # condition `message=None` lets only one of two messages have the file.
        if not unsent_row.update(message=message, created_at=timezone.now()):
            raise FileUnavailable(position)


def copy_files(
    previous_version: Message, message: Message, *, attachment_id: UUID | None = None
) -> None:
    """Copy the files of an earlier version, or only one of them, to the message."""
    rows = previous_version.attachments.filter(kind=Attachment.Kind.FILE)
    if attachment_id:
        rows = rows.filter(pk=attachment_id)
    for attachment in rows:
        files = list(OutputFile.objects.filter(attachment=attachment))
        attachment.pk = uuid4()
        attachment.message = message
        attachment.created_at = timezone.now()
        attachment.save(force_insert=True)
        for file in files:  # the copy refers to the same object
            OutputFile.objects.create(
                attachment=attachment, session_id=file.session_id, name=file.name, size=file.size
            )


def prune_unsent_files() -> int:
    """Delete files that were uploaded before UNSENT_LIFETIME and never sent. Returns how many.

    Those of people of whom everything is kept stay.
    """
    with transaction.atomic():
        files = Attachment.objects.filter(
            message=None, created_at__lt=read_clock() - UNSENT_LIFETIME
        )
        return exclude_kept(files, "session__owner").delete()[0]


def _refuse_more(session: Session) -> None:
    unsent_files = Attachment.objects.filter(session=session, message=None)
    if unsent_files.count() >= MAX_UNSENT_FILES:
        raise TooManyUnsentFiles(
            f"{MAX_UNSENT_FILES} files of this session were uploaded and not sent;"
            " send or delete some first."
        )


def _has_file(message: Message, attachment_id: UUID) -> bool:
    return message.attachments.filter(pk=attachment_id, kind=Attachment.Kind.FILE).exists()


def _build_image(name: str, data: bytes, image: images.ImageInfo) -> Attachment:
    """Return the image alone: what stands behind it may be a page, or anything else."""
    return Attachment(
        name=name,
        media_type=image.media_type,
        size=min(len(data), image.byte_count),
        data=data[: image.byte_count],
        token_estimate=image.token_estimate,
    )


def _decode_text(name: str, data: bytes) -> tuple[str, str]:
    """Return the text of a file and its media type, which names an encoding that was guessed."""
    decoded = text.read_text(data)
    if decoded is None:
        raise FileRejected(
            "Only texts, PDF files and images (PNG, JPEG, GIF, WebP, HEIC, AVIF) can be attached,"
            " and office files (DOCX, XLSX, PPTX); this is something else."
        )
    media_type = text.guess_media_type(name)
    if decoded.guessed_encoding:
        media_type += f"; charset={decoded.guessed_encoding}"
    return decoded.text, media_type


def _convert_photograph(name: str, data: bytes, owner_id: object) -> tuple[str, bytes]:
    """Return the picture as providers take it, under a name that says what it is now."""
    if not connection.in_atomic_block:
        close_old_connections()
    picture = photographs.make_fit(data, owner=owner_id)
    extension = ".jpg" if picture.startswith(b"\xff\xd8") else ".png"
    return f"{PurePosixPath(name).stem}{extension}", picture


def _read_document(data: bytes, owner_id: object) -> tuple[str, str] | None:
    """Return the text and the media type of a PDF or office file; None for others."""
    media_type = office.find_media_type(data)
    if not (media_type or pdf.is_pdf(data)):
        return None
    # Reading takes seconds, and others need a connection of the same pool meanwhile.
    if not connection.in_atomic_block:
        close_old_connections()
    if media_type:
        return office.extract_text(data, owner=owner_id), media_type
    return pdf.extract_text(data, owner=owner_id), "application/pdf"
