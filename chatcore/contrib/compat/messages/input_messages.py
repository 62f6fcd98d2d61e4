"""Parse the messages and the system text of a request."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.client_messages import ClientMessage, add_system_text
from chatcore.contrib.compat.content_parts import (
    iterate_objects,
    limit_messages,
    limit_text,
    parse_required_text,
)
from chatcore.contrib.compat.messages.content_blocks import (
    Blocks,
    parse_blocks,
    parse_cache_control,
)
from chatcore.contrib.compat.sealed_data import unseal
from chatcore.providers.protocols import load_protocol
from chatcore.providers.provider_data import CACHE_CONTROL, is_usual_order
from models_registry.models import AiModel

USER_TYPES = ("text", "image", "document", "search_result", "tool_result", "compaction")
ASSISTANT_TYPES = ("text", "tool_use", "thinking", "redacted_thinking", "compaction")
RESULT_TYPES = ("text", "image", "document", "search_result")
# The signature of thoughts that no provider signed. No provider gets one back.
OWN_SIGNATURE = "chatcore"


@dataclass
class Input:
    """What a request says. `compaction` is the block that it begins with, and its path.

    `used_tools` are the tools that its messages call, or that a search of the client has found.
    """

    messages: list[ClientMessage] = field(default_factory=list)
    system_texts: list[str] = field(default_factory=list)
    system_cache_control: dict[str, object] | None = None
    compaction: tuple[str, Mapping[str, object]] | None = None
    left_out: list[str] = field(default_factory=list)
    used_tools: set[str] = field(default_factory=set)

    def note(self, blocks: Blocks) -> None:
        """Note what was left out of a message, and the tools that it names."""
        self.left_out += blocks.left_out
        self.used_tools.update(blocks.found_tools, (call.name for call in blocks.calls))


def parse_input(body: Mapping[str, object], model: AiModel) -> Input:
    """Return the leading system texts and the messages; empty messages are left out.

    Raises the 400 problem that names the field, and TooLargeProblem.
    """
    items = body.get("messages")
    if not isinstance(items, list) or not items:
        raise InvalidFieldError("messages", "A list with at least one message.")
    limit_messages(items)
    parsed_input = Input()
    _add_system(parsed_input, body.get("system"), "system")
    for path, message in iterate_objects(items, "messages"):
        if message.get("role") == "system":
            _add_system(parsed_input, message.get("content"), f"{path}.content")
        else:
            messages = _parse_message(message, path, model, parsed_input)
            parsed_input.messages += [message for message in messages if message.has_content]
    return parsed_input


def _add_system(parsed_input: Input, value: object, path: str) -> None:
    if value is None:
        return
    blocks = parse_blocks(value, path, ("text",))
    parsed_input.note(blocks)
    text = limit_text(blocks.text, path)
    if text and parsed_input.messages:
        add_system_text(parsed_input.messages, text)
    elif text:
        parsed_input.system_texts.append(text)
        parsed_input.system_cache_control = (
            blocks.cache_control or parsed_input.system_cache_control
        )


def _parse_message(
    message: Mapping[str, object], path: str, model: AiModel, parsed_input: Input
) -> Iterator[ClientMessage]:
    """Yield the message: results of tools, if it has some, are messages of their own."""
    role = message.get("role")
    content_path = f"{path}.content"
    if role == "user":
        blocks = parse_blocks(message.get("content"), content_path, USER_TYPES)
        parsed_input.note(blocks)
        _take_compaction(parsed_input, blocks)
        for result_path, result in blocks.results:
            yield _parse_result(result, result_path, parsed_input)
        yield ClientMessage(
            role="user",
            content=limit_text(blocks.user_text, content_path),
            files=tuple(blocks.files),
            provider_data=_build_provider_data(blocks, model),
        )
    elif role == "assistant":
        blocks = parse_blocks(message.get("content"), content_path, ASSISTANT_TYPES)
        parsed_input.note(blocks)
        _take_compaction(parsed_input, blocks)
        yield ClientMessage(
            role="assistant",
            content=limit_text(blocks.answer_text, content_path),
            calls=tuple(blocks.calls),
            provider_data=_build_provider_data(blocks, model),
        )
    else:
        raise InvalidFieldError(f"{path}.role", "One of user, assistant, system.")


def _take_compaction(parsed_input: Input, blocks: Blocks) -> None:
    """Note a block that stands for everything before it, which is left out then."""
    for path, block in blocks.compactions:
        if block.get("content") is None:
            continue  # a compaction that failed
        parsed_input.compaction = path, block
        parsed_input.messages.clear()


def _parse_result(block: Mapping[str, object], path: str, parsed_input: Input) -> ClientMessage:
    """Return the result of a tool; one of any length is accepted, and cut when it is stored."""
    content = block.get("content")
    blocks = parse_blocks("" if content is None else content, f"{path}.content", RESULT_TYPES)
    parsed_input.note(blocks)
    is_error = block.get("is_error") or False
    if not isinstance(is_error, bool):
        raise InvalidFieldError(f"{path}.is_error", "Either true or false.")
    mark = parse_cache_control(block, path, parsed_input.left_out) or blocks.cache_control
    return ClientMessage(
        role="tool",
        content=blocks.text,
        call_id=parse_required_text(block.get("tool_use_id"), f"{path}.tool_use_id"),
        is_error=is_error,
        files=tuple(blocks.files),
        provider_data={CACHE_CONTROL: mark} if mark else {},
    )


def _build_provider_data(blocks: Blocks, model: AiModel) -> dict[str, object]:
    """Return what the provider wants back with this message: its thoughts, marks of its cache.

    Thoughts of another protocol's model say nothing to this one, so they are left out. What we have
    sealed is whole, and goes to no other model.
    """
    data: dict[str, Any] = {CACHE_CONTROL: blocks.cache_control} if blocks.cache_control else {}
    protocol = model.provider.protocol
    own_thoughts, signed_thoughts = [], []
    for thought in blocks.thoughts:
        sealed_data = unseal(thought.get("data"))
        if protocol in sealed_data:
            return data | {protocol: sealed_data[protocol]}
        if thought.get("signature") == OWN_SIGNATURE:
            own_thoughts.append(thought["thinking"])
        elif not sealed_data:
            signed_thoughts.append(thought)
    if not load_protocol(protocol).capabilities.has_signed_thoughts:
        if any(own_thoughts):
            data[protocol] = {"model": model.name, "reasoning": "".join(own_thoughts)}
    elif signed_thoughts:
        data[protocol] = {"model": model.name, "thinking": signed_thoughts}
        if not is_usual_order(blocks.order):
            data[protocol]["order"] = blocks.order
    return data
