"""Parse the content blocks of messages, and of the results of tools."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.content_parts import (
    inspect_data,
    iterate_objects,
    join_texts,
    limit_files,
    parse_data,
    parse_image_data,
    parse_required_text,
    parse_text,
    require_object,
)
from chatcore.contrib.compat.known_types import Handling, describe_left_out, find_handling
from chatcore.contrib.compat.messages.request_tools import CacheControl, is_unknown_mark
from chatcore.models import Attachment
from chatcore.providers.base import ToolCall
from chatcore.providers.provider_data import CALL, THOUGHT, is_usual_order

NOT_STORED = "Files are not kept here: send it as base64."
NOT_FETCHED = "Send it as base64; addresses are not fetched."
# The text of each block that is a thought. The protocol wants thoughts back unchanged.
THOUGHT_FIELDS = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}


@dataclass
class Blocks:
    """What the blocks of one message hold, by kind; files are not stored yet.

    `results` are the blocks of the results of tools, and `cache_control` the last mark of a block
    that is none of those. `order` is that of an answer's blocks, as it is stored. `left_out` names
    the types that were left out, and `found_tools` the tools that a search has found.
    """

    texts: list[str] = field(default_factory=list)
    files: list[Attachment] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    thoughts: list[dict[str, str]] = field(default_factory=list)
    results: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    compactions: list[tuple[str, Mapping[str, object]]] = field(default_factory=list)
    cache_control: dict[str, object] | None = None
    order: list[str | int] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)
    found_tools: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The texts, as paragraphs of one."""
        return join_texts(self.texts)

    @property
    def user_text(self) -> str:
        """The texts of a user's message; where nothing is left of it, what was left out."""
        if self.text or self.files or self.results or self.compactions:
            return self.text
        return describe_left_out(name.rpartition(".")[2] for name in self.left_out)

    @property
    def answer_text(self) -> str:
        """The texts of an answer: those between thoughts and calls are parts of one text."""
        return self.text if is_usual_order(self.order) else "".join(self.texts)


def parse_blocks(content: object, path: str, accepted_types: Sequence[str]) -> Blocks:
    """Return what the content of a message holds: a text, or a list of blocks.

    Raises the 400 problem that names the block, and TooLargeProblem.
    """
    blocks = Blocks()
    if isinstance(content, str):
        blocks.texts.append(content)
        return blocks
    if not isinstance(content, list):
        raise InvalidFieldError(path, "A text, or a list of content blocks.")
    for block_path, block in iterate_objects(content, path):
        type = block.get("type")
        if type in accepted_types:
            _add_block(blocks, str(type), block, block_path)
            continue
        handling = find_handling("messages.content", type) if isinstance(type, str) else None
        if handling is Handling.AS_TEXT:
            text = parse_required_text(block.get("tool_name"), f"{block_path}.tool_name")
            blocks.texts.append(f"[Tool found: {text}]")
            blocks.found_tools.append(text)
            blocks.order.append(len(blocks.texts[-1]))
        elif handling is Handling.LEFT_OUT:
            blocks.left_out.append(f"messages.content.{str(type)[:64]}")
        else:
            detail = f"Blocks of the type {type!r} are not supported here."
            raise InvalidFieldError(f"{block_path}.type", detail)
    limit_files(blocks.files)
    return blocks


def parse_cache_control(
    block: Mapping[str, object], path: str, left_out: list[str]
) -> dict[str, object] | None:
    """Return the mark of a block that its provider is to cache up to here; None if it has none.

    One that is not known is named in `left_out`.
    """
    value = block.get("cache_control")
    if value is None:
        return None
    if is_unknown_mark(value):
        left_out.append("messages.content.cache_control")
        return None
    return CacheControl.parse(value, f"{path}.cache_control").model_dump(exclude_none=True)


def _add_block(blocks: Blocks, type: str, block: Mapping[str, object], path: str) -> None:
    if type == "tool_result":
        blocks.results.append((path, block))
        return
    if type == "compaction":
        blocks.compactions.append((path, block))
        return
    mark = parse_cache_control(block, path, blocks.left_out)
    blocks.cache_control = mark or blocks.cache_control
    if type == "text":
        text = parse_text(block.get("text"), f"{path}.text")
        blocks.texts.append(text)
        blocks.order.append(len(text))
    elif type == "image":
        blocks.files.append(_parse_image(block, path, len(blocks.files) + 1))
    elif type == "document":
        _add_document(blocks, block, path)
    elif type == "search_result":
        _add_search_result(blocks, block, path)
    elif type == "tool_use":
        blocks.calls.append(_parse_call(block, path))
        blocks.order.append(CALL)
    else:
        names = THOUGHT_FIELDS[type]
        texts = {name: parse_text(block.get(name), f"{path}.{name}") for name in names}
        blocks.thoughts.append({"type": type, **texts})
        blocks.order.append(THOUGHT)


def _parse_image(block: Mapping[str, object], path: str, number: int) -> Attachment:
    source, source_path = _get_source(block, path)
    if source.get("type") != "base64":
        raise InvalidFieldError(f"{source_path}.type", _refuse_source(source))
    return parse_image_data(source.get("data"), f"{source_path}.data", number)


def _add_document(blocks: Blocks, block: Mapping[str, object], path: str) -> None:
    """Add a document as a file, and what the client says of it as a text."""
    source, source_path = _get_source(block, path)
    title = block.get("title")
    name = title if isinstance(title, str) and title else f"document-{len(blocks.files) + 1}"
    context = block.get("context")
    if isinstance(context, str) and context:
        blocks.texts.append(f"{name}: {context}")
    type = source.get("type")
    data_path = f"{source_path}.data"
    if type == "base64":
        blocks.files.append(parse_data(source.get("data"), name, data_path))
    elif type == "text":
        text = parse_required_text(source.get("data"), data_path)
        blocks.files.append(inspect_data(text.encode(), name, data_path))
    elif type == "content":
        content_path = f"{source_path}.content"
        parts = parse_blocks(source.get("content"), content_path, ("text", "image"))
        blocks.files += parts.files
        blocks.left_out += parts.left_out
        if parts.text:
            blocks.files.append(inspect_data(parts.text.encode(), name, content_path))
    else:
        raise InvalidFieldError(f"{source_path}.type", _refuse_source(source))


def _get_source(block: Mapping[str, object], path: str) -> tuple[Mapping[str, object], str]:
    source_path = f"{path}.source"
    return require_object(block.get("source"), source_path), source_path


def _refuse_source(source: Mapping[str, object]) -> str:
    return NOT_STORED if source.get("type") == "file" else NOT_FETCHED


def _add_search_result(blocks: Blocks, block: Mapping[str, object], path: str) -> None:
    title = parse_text(block.get("title"), f"{path}.title")
    source = parse_text(block.get("source"), f"{path}.source")
    content = parse_blocks(block.get("content"), f"{path}.content", ("text",))
    blocks.texts.append(f"{title} ({source})\n{content.text}")
    blocks.left_out += content.left_out


def _parse_call(block: Mapping[str, object], path: str) -> ToolCall:
    arguments = require_object(block.get("input") or {}, f"{path}.input")
    return ToolCall(
        id=parse_required_text(block.get("id"), f"{path}.id"),
        name=parse_required_text(block.get("name"), f"{path}.name"),
        arguments=json.dumps(arguments, ensure_ascii=False),
    )
