"""Parse the content of an item: texts, images and files."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chatcore.base.rest import limits
from chatcore.base.rest.problems import InvalidFieldError, TooLargeProblem
from chatcore.contrib.compat.content_parts import (
    decode_data,
    inspect_data,
    parse_image,
    parse_required_text,
    parse_text,
    require_object,
)
from chatcore.files import intake
from chatcore.models import Attachment

# By the type of a content part: the key of its text.
TEXT_PART_KEYS = {
    "input_text": "text",
    "output_text": "text",
    "text": "text",
    "summary_text": "text",
    "reasoning_text": "text",
    "refusal": "refusal",
}


@dataclass(frozen=True, kw_only=True)
class Content:
    """The texts of an item, joined, and its files, which are not stored yet."""

    text: str = ""
    files: tuple[Attachment, ...] = ()


def parse_content(value: Any, path: str, *, is_output: bool = False) -> Content:
    """Return the content of a message or an output: a text, or a list of parts.

    An output of any length is accepted, and cut when it is stored. Raises the 400 problem that
    names the field, and TooLargeProblem.
    """
    if isinstance(value, str):
        value = [{"type": "input_text", "text": value}]
    if not isinstance(value, list):
        raise InvalidFieldError(path, "A text, or a list of parts.")
    texts: list[str] = []
    files: list[Attachment] = []
    for index, item in enumerate(value):
        part_path = f"{path}[{index}]"
        part = require_object(item, part_path)
        type = part.get("type")
        if type in TEXT_PART_KEYS:
            key = TEXT_PART_KEYS[type]
            texts.append(parse_text(part.get(key), f"{part_path}.{key}"))
        elif type == "input_image":
            files.append(_parse_image(part, part_path, len(files) + 1))
        elif type == "input_file":
            files.append(_parse_file(part, part_path))
        else:
            detail = f"Parts of the type {type!r} are not supported."
            raise InvalidFieldError(f"{part_path}.type", detail)
    text = "\n\n".join(text for text in texts if text)
    if not is_output and limits.exceeds_bytes(text, limits.MESSAGE_BYTES):
        kilobytes = limits.MESSAGE_BYTES // limits.KB
        raise TooLargeProblem(f"{path} is longer than {kilobytes} KB of text.")
    if len(files) > intake.MAX_FILES:
        raise TooLargeProblem(f"A message has at most {intake.MAX_FILES} files.")
    return Content(text=text, files=tuple(files))


def _parse_image(part: Mapping[str, Any], path: str, number: int) -> Attachment:
    if part.get("file_id"):
        raise InvalidFieldError(f"{path}.file_id", "Files are not kept here: send the image.")
    return parse_image(part.get("image_url"), f"{path}.image_url", number)


def _parse_file(part: Mapping[str, Any], path: str) -> Attachment:
    for name in ("file_id", "file_url"):
        if part.get(name):
            raise InvalidFieldError(f"{path}.{name}", "Send the file itself as `file_data`.")
    data_path = f"{path}.file_data"
    data = decode_data(parse_required_text(part.get("file_data"), data_path), data_path)
    file_name = part.get("filename")
    return inspect_data(data, file_name if isinstance(file_name, str) else "file", data_path)
