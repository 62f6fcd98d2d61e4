"""Parse the parts of a message's content that the APIs have in common."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from chatcore.base.rest import limits
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.contrib.compat.known_types import Handling, describe_left_out, find_handling
from chatcore.files import intake
from chatcore.models import Attachment
from chatcore.sessions.wrapping import find_words

DATA_PREFIX = "data:"
NOT_FETCHED = "Send it as a data: address in base64; other addresses are not fetched."
# By the type of a part: the key of its text.
TEXT_KEYS = {
    "text": "text",
    "input_text": "text",
    "output_text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}
# Up to the next mark of the same kind: to search behind each opening one takes a text's square.
_REMINDERS = re.compile(
    r"<system-reminder>(?:[^<]++|<(?!/?system-reminder>))*+</system-reminder>"
    r"|<system-message>(?:[^<]++|<(?!/?system-message>))*+</system-message>"
)
# Given a part, its path and the number of its file in its message: the file, not stored yet.
FileReader = Callable[[Mapping[str, object], str, int], Attachment]


class Content(NamedTuple):
    """The texts of a message, joined, and its files, which are not stored yet.

    `left_out` has the types of parts that were left out.
    """

    text: str = ""
    files: tuple[Attachment, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def user_text(self) -> str:
        """The texts of a user's message; where nothing is left of it, what was left out."""
        return self.text or ("" if self.files else describe_left_out(self.left_out))


def parse_content(
    value: object, path: str, file_readers: Mapping[str, FileReader], *, table: str = ""
) -> Content:
    """Return the content of a message: a text, or a list of parts.

    `file_readers` stand under the types of their parts. Types that the `table` of known ones leaves
    out are left out; without a table they are refused. Raises the 400 problem that names the field,
    and TooLargeProblem.
    """
    if isinstance(value, str):
        return Content(text=value)
    if not isinstance(value, list):
        raise InvalidFieldError(path, "A text, or a list of parts.")
    texts: list[str] = []
    files: list[Attachment] = []
    left_out: list[str] = []
    for part_path, part in iterate_objects(value, path):
        type = str(part.get("type"))
        if type in TEXT_KEYS:
            texts.append(parse_text(part.get(TEXT_KEYS[type]), f"{part_path}.{TEXT_KEYS[type]}"))
        elif type in file_readers:
            files.append(file_readers[type](part, part_path, len(files) + 1))
        elif table and part.get("type") and find_handling(table, type) is Handling.LEFT_OUT:
            left_out.append(type)
        else:
            detail = f"Parts of the type {type!r} are not supported."
            raise InvalidFieldError(f"{part_path}.type", detail)
    limit_files(files)
    return Content(text=join_texts(texts), files=tuple(files), left_out=tuple(left_out))


def strip_reminders(text: str) -> str:
    """Return a text without what a program adds to it and takes away again.

    Those are its reminders to the model, and marked texts of the system.
    """
    pieces = _REMINDERS.split(text)
    return "\n".join(piece.strip() for piece in pieces if piece.strip())


def find_lasting_text(role: str, text: str) -> str:
    """Return what a program sends again of a message, without its blocks around a user's words.

    A user's message that has nothing else stays whole.
    """
    text = strip_reminders(text)
    return find_words(text) or text if role == "user" else text


def join_texts(texts: Iterable[str | None]) -> str:
    """Return texts as paragraphs of one."""
    return "\n\n".join(text for text in texts if text)


def limit_files(files: Sequence[Attachment]) -> None:
    """Raise TooLargeProblem if these are too many files of one message."""
    if len(files) > intake.MAX_FILES:
        raise TooLargeProblem(f"A message has at most {intake.MAX_FILES} files.")


def limit_text(text: str, path: str) -> str:
    """Return the text of a message. Raises TooLargeProblem if it is longer than one may be."""
    if limits.exceeds_bytes(text, limits.MESSAGE_BYTES):
        kilobytes = limits.MESSAGE_BYTES // limits.KB
        raise TooLargeProblem(f"{path} is longer than {kilobytes} KB of text.")
    return text


def limit_messages(messages: Sequence[object], kind: str = "messages") -> None:
    """Raise TooLargeProblem if these are too many messages of one request."""
    if len(messages) > limits.IMPORT_MESSAGES:
        raise TooLargeProblem(f"A request has at most {limits.IMPORT_MESSAGES:,} {kind}.")


def parse_text(value: object, path: str) -> str:
    """Return a text. Raises the 400 problem for anything else."""
    if not isinstance(value, str):
        raise InvalidFieldError(path, "A text.")
    return value


def parse_required_text(value: object, path: str) -> str:
    """Return a text that is not empty. Raises the 400 problem for anything else."""
    if not isinstance(value, str) or not value:
        raise InvalidFieldError(path, "A text.")
    return value


def require_object(value: object, path: str) -> Mapping[str, object]:
    """Return an object. Raises the 400 problem for anything else."""
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, "An object.")
    return value


def iterate_objects(
    items: Iterable[object], path: str
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the objects of a list with their paths. Raises the 400 problem for anything else."""
    for index, item in enumerate(items):
        item_path = f"{path}[{index}]"
        yield item_path, require_object(item, item_path)


def parse_image(url: object, path: str, number: int) -> Attachment:
    """Return the unsaved image of a data: URL (RFC 2397). Other URLs are never fetched."""
    if not isinstance(url, str) or not url.startswith(DATA_PREFIX):
        raise InvalidFieldError(path, NOT_FETCHED)
    return parse_image_data(url, path, number)


def parse_image_data(value: object, path: str, number: int) -> Attachment:
    """Return the unsaved image of a data: URL, or of base64 alone."""
    attachment = parse_data(value, f"image-{number}", path)
    if not attachment.media_type.startswith("image/"):
        raise InvalidFieldError(path, "An image is PNG, JPEG, GIF or WebP.")
    return attachment


def parse_file(file: Mapping[str, object], path: str) -> Attachment:
    """Return the unsaved file that a client sent as `file_data`, under its name."""
    for name in ("file_id", "file_url"):
        if file.get(name):
            raise InvalidFieldError(f"{path}.{name}", "Send the file itself as `file_data`.")
    sent_name = file.get("filename")
    file_name = sent_name if isinstance(sent_name, str) else "file"
    return parse_data(file.get("file_data"), file_name, f"{path}.file_data")


def parse_data(value: object, name: str, path: str) -> Attachment:
    """Return the unsaved file of a data: URL (RFC 2397), or of base64 alone."""
    return inspect_data(decode_data(parse_required_text(value, path), path), name, path)


def decode_data(text: str, path: str) -> bytes:
    """Return the bytes of a data: URL (RFC 2397), or of base64 alone."""
    if text.startswith(DATA_PREFIX):
        head, _, text = text.partition(",")
        if not head.endswith(";base64"):
            raise InvalidFieldError(path, "A data: address in base64 is expected.")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise InvalidFieldError(path, "This is not base64.") from None


def inspect_data(data: bytes, name: str, path: str) -> Attachment:
    """Return the unsaved attachment of a file. Raises the 400 problem if it is not accepted."""
    try:
        return intake.inspect_file(name=name, data=data)
    except intake.FileRejected as error:
        raise InvalidFieldError(path, str(error)) from None
