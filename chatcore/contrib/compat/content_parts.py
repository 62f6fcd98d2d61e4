"""Parse the parts of a message's content that the APIs have in common."""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.files import intake
from chatcore.models import Attachment

DATA_PREFIX = "data:"
NOT_FETCHED = "Send it as a data: address in base64; other addresses are not fetched."


def parse_text(value: Any, path: str) -> str:
    """Return a text. Raises the 400 problem for anything else."""
    if not isinstance(value, str):
        raise InvalidFieldError(path, "A text.")
    return value


def parse_required_text(value: Any, path: str) -> str:
    """Return a text that is not empty. Raises the 400 problem for anything else."""
    if not isinstance(value, str) or not value:
        raise InvalidFieldError(path, "A text.")
    return value


def require_object(value: Any, path: str) -> Mapping[str, Any]:
    """Return an object. Raises the 400 problem for anything else."""
    if not isinstance(value, Mapping):
        raise InvalidFieldError(path, "An object.")
    return value


def parse_image(url: Any, path: str, number: int) -> Attachment:
    """Return the unsaved image of a data: URL (RFC 2397). Other URLs are never fetched."""
    if not isinstance(url, str) or not url.startswith(DATA_PREFIX):
        raise InvalidFieldError(path, NOT_FETCHED)
    attachment = inspect_data(decode_data(url, path), f"image-{number}", path)
    if not attachment.media_type.startswith("image/"):
        raise InvalidFieldError(path, "An image is PNG, JPEG, GIF or WebP.")
    return attachment


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
