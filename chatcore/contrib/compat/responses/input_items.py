"""Parse the items of a request into messages, system texts and a compaction."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.contrib.compat.client_messages import ClientMessage, add_system_text
from chatcore.contrib.compat.content_parts import (
    Content,
    iterate_objects,
    join_texts,
    limit_messages,
    limit_text,
    parse_content,
    parse_file,
    parse_image,
    parse_required_text,
    parse_text,
    require_object,
)
from chatcore.contrib.compat.custom_tools import build_arguments
from chatcore.contrib.compat.known_types import Handling, find_handling
from chatcore.contrib.compat.responses.request_tools import (
    SEARCH_NAME,
    LiftedTools,
    join_name,
    list_functions,
)
from chatcore.contrib.compat.sealed_data import unseal
from chatcore.models import Attachment
from chatcore.providers.base import ToolCall
from chatcore.tools.mcp.catalog import build_tool_name

SYSTEM_ROLES = ("system", "developer")
PHASES = ("commentary", "final_answer")
CLIENT_ITEMS = (
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "tool_search_call",
    "tool_search_output",
    "additional_tools",
)
SERVER_ITEMS = ("mcp_list_tools", "mcp_call", "mcp_approval_request", "mcp_approval_response")
CALL_KEYS = frozenset({"id", "type", "call_id", "status"})  # that say nothing of what was called
FOUND_TOOLS = "These tools were found and can be called now: {names}"
FOUND_NOTHING = "No tools were found."
# Given the id of an item and its path in the request: the item. Raises the 404 problem.
ItemLoader = Callable[[str, str], Mapping[str, object]]


@dataclass(frozen=True, kw_only=True)
class InputApproval:
    """A person's word on a call."""

    request_id: str
    is_allowed: bool
    reason: str
    path: str


@dataclass(kw_only=True)
class ResponseInput:
    """The input of a request.

    `compaction` is the content of the last compaction item; the messages are those after it.
    `server_call_ids` are the calls among them that ran here.
    `has_trigger` says that the input ends with an item that asks for a compaction.
    `lifted_tools` are those of items, and `ignored_fields` name the items that were left out.
    """

    messages: list[ClientMessage] = field(default_factory=list)
    approvals: list[InputApproval] = field(default_factory=list)
    server_call_ids: set[str] = field(default_factory=set)
    system_texts: list[str] = field(default_factory=list)
    compaction: str = ""
    has_trigger: bool = False
    lifted_tools: list[LiftedTools] = field(default_factory=list)
    ignored_fields: list[str] = field(default_factory=list)


def parse_input(value: object, load_item: ItemLoader) -> ResponseInput:
    """Return the input of a request: a text, or a list of items.

    `load_item` finds what a reference names. Raises the 400 problem that names the field.
    """
    if value is None:
        return ResponseInput()
    if isinstance(value, str):
        value = [{"role": "user", "content": value}]
    if not isinstance(value, list):
        raise InvalidFieldError("input", "A text, or a list of items.")
    limit_messages(value, "items")
    parser = _InputParser(load_item)
    for index, item in enumerate(value):
        path = f"input[{index}]"
        if parser.result.has_trigger:
            raise InvalidFieldError(path, "Nothing may follow a compaction trigger.")
        parser.add_item(require_object(item, path), path)
    return parser.result


class _InputParser:
    """Collects the items of one request."""

    def __init__(self, load_item: ItemLoader) -> None:
        self.result = ResponseInput()
        self._load_item = load_item
        self._reasoning: dict[str, object] = {}  # of the answer that follows
        self._request_ids: set[str] = set()  # of the approvals that were asked for

    def add_item(self, item: Mapping[str, object], path: str) -> None:
        """Add one item, after those before it."""
        type = str(item.get("type") or ("message" if "role" in item else "item_reference"))
        match type:
            case "message":
                self._add_message(item, path)
            case "agent_message":
                self._add_agent_message(item, path)
            case "reasoning":
                self._add_reasoning(unseal(item.get("encrypted_content")))
            case "compaction":
                self._add_compaction(item, path)
            case "compaction_trigger":
                self.result.has_trigger = True
            case "item_reference":
                item_id = parse_required_text(item.get("id"), f"{path}.id")
                self.add_item(self._load_item(item_id, f"{path}.id"), path)
            case _ if type in CLIENT_ITEMS:
                self._add_client_item(type, item, path)
            case _ if type in SERVER_ITEMS:
                self._add_server_item(type, item, path)
            case _:
                self._add_other(type, item, path)

    def _add_client_item(self, type: str, item: Mapping[str, object], path: str) -> None:
        """Add what is about a tool that the client runs."""
        match type:
            case "function_call":
                arguments = item.get("arguments")
                if not isinstance(arguments, str):
                    raise InvalidFieldError(f"{path}.arguments", "The arguments as JSON text.")
                self._append_call(_build_call(item, path, arguments))
            case "custom_tool_call":
                text = parse_text(item.get("input") or "", f"{path}.input")
                self._append_call(_build_call(item, path, build_arguments(text)))
            case "tool_search_call" if item.get("call_id"):
                arguments = json.dumps(require_object(item.get("arguments"), f"{path}.arguments"))
                self._append_call(_build_call({**item, "name": SEARCH_NAME}, path, arguments))
            case "function_call_output" | "custom_tool_call_output":
                self._add_output(item, path)
            case "additional_tools" | "tool_search_output":
                self._lift_tools(type, item, path)

    def _add_message(self, item: Mapping[str, object], path: str) -> None:
        role = item.get("role")
        content = self._parse_content(item.get("content"), f"{path}.content")
        limit_text(content.text, f"{path}.content")
        if role in SYSTEM_ROLES:
            if content.files:
                raise InvalidFieldError(f"{path}.content", "A system text has no files.")
            if not self.result.messages:
                self.result.system_texts.append(content.text)
            elif content.text:
                add_system_text(self.result.messages, content.text)
        elif role == "user":
            if content.user_text or content.files:
                self.result.messages.append(
                    ClientMessage(role="user", content=content.user_text, files=content.files)
                )
        elif role == "assistant":
            phase = item.get("phase")
            if phase is not None and phase not in PHASES:
                raise InvalidFieldError(f"{path}.phase", "Either commentary or final_answer.")
            self._add_answer(content.text)
        else:
            detail = "One of user, assistant, system, developer."
            raise InvalidFieldError(f"{path}.role", detail)

    def _parse_content(self, value: object, path: str) -> Content:
        """Return the content of a message or an output, and note the parts that are left out."""
        content = parse_content(value, path, FILE_READERS, table="responses.content")
        self.result.ignored_fields += [f"input.content.{type[:64]}" for type in content.left_out]
        return content

    def _add_agent_message(self, item: Mapping[str, object], path: str) -> None:
        """Add what one agent of a program wrote to this one.

        OpenAI seals the text of such a message. A model here wrote it as the argument of a call, so
        it comes back as it was written.
        """
        content = item.get("content")
        parts = content if isinstance(content, list) else []
        texts = [
            part.get("text") or part.get("encrypted_content")
            for _, part in iterate_objects(parts, f"{path}.content")
        ]
        text = limit_text("".join(map(str, filter(None, texts))), f"{path}.content")
        if text:
            self.result.messages.append(ClientMessage(role="user", content=text))

    def _add_answer(self, text: str) -> None:
        if not text:
            return
        last_message = self._get_open_answer()
        if last_message is None:
            self.result.messages.append(
                ClientMessage(role="assistant", content=text, provider_data=self._take_reasoning())
            )
            return
        # Roles alternate in the templates of many servers, so two answers in a row are one.
        joined_text = join_texts([last_message.content, text])
        self.result.messages[-1] = replace(last_message, content=joined_text)

    def _add_reasoning(self, provider_data: dict[str, object]) -> None:
        """Note what the next answer's provider wants back; after a text it belongs to that."""
        last_message = self._get_open_answer()
        if last_message is None or last_message.provider_data or last_message.calls:
            self._reasoning = provider_data
        else:
            self.result.messages[-1] = replace(last_message, provider_data=provider_data)

    def _lift_tools(self, type: str, item: Mapping[str, object], path: str) -> None:
        """Note the tools that an item brings along; those that were searched for are a result."""
        tools = item.get("tools")
        if not isinstance(tools, list):
            raise InvalidFieldError(f"{path}.tools", "A list of tools.")
        self.result.lifted_tools.append(LiftedTools(tools=tools, path=f"{path}.tools"))
        if type == "tool_search_output" and item.get("call_id"):
            names = [function["name"] for function in list_functions(tools, f"{path}.tools")]
            text = FOUND_TOOLS.format(names=", ".join(names)) if names else FOUND_NOTHING
            self._add_output({**item, "output": text}, path)

    def _add_other(self, type: str, item: Mapping[str, object], path: str) -> None:
        """Add a call that a client ran, or what came of it; leave out everything else."""
        handling = find_handling("responses.input", type)
        if handling is not Handling.AS_FUNCTION or not item.get("call_id"):
            self.result.ignored_fields.append(f"input.{type[:64]}")
        elif type.endswith("_output"):
            self._add_output({**item, "output": _write_output(item.get("output"))}, path)
        else:
            name = type.removesuffix("_call")
            details = {key: value for key, value in item.items() if key not in CALL_KEYS}
            self._append_call(_build_call({**item, "name": name}, path, json.dumps(details)))

    def _append_call(self, call: ToolCall) -> None:
        last_message = self._get_open_answer()
        if last_message is None:
            self.result.messages.append(
                ClientMessage(role="assistant", calls=(call,), provider_data=self._take_reasoning())
            )
        else:
            self.result.messages[-1] = replace(last_message, calls=(*last_message.calls, call))

    def _add_output(self, item: Mapping[str, object], path: str) -> None:
        call_id = parse_required_text(item.get("call_id"), f"{path}.call_id")
        # One of any length is accepted, and cut when it is stored.
        output = item.get("output")
        output = _write_output(output) if isinstance(output, Mapping) else output
        content = self._parse_content(output, f"{path}.output")
        self.result.messages.append(
            ClientMessage(role="tool", content=content.text, call_id=call_id, files=content.files)
        )

    def _add_server_item(self, type: str, item: Mapping[str, object], path: str) -> None:
        """Add an item of an MCP server. A list of tools says nothing: the server is asked again."""
        match type:
            case "mcp_call":
                self._add_server_call(item, path)
            case "mcp_approval_request":
                self._add_approval_request(item, path)
            case "mcp_approval_response":
                self._add_approval(item, path)

    def _add_server_call(self, item: Mapping[str, object], path: str) -> None:
        """Add a call that ran here, and its result."""
        request_id = item.get("approval_request_id")
        if request_id in self._request_ids:
            call_id = str(request_id)
        else:
            call_id = parse_required_text(item.get("id"), f"{path}.id")
            self._append_server_call(_parse_server_call(item, path, call_id))
        error = item.get("error")
        text = item.get("output") or ""
        if error:
            text = text or (error if isinstance(error, str) else json.dumps(error))
        self.result.messages.append(
            ClientMessage(
                role="tool",
                content=parse_text(text, f"{path}.output"),
                call_id=call_id,
                is_error=bool(error),
            )
        )

    def _append_server_call(self, call: ToolCall) -> None:
        self.result.server_call_ids.add(call.id)
        self._append_call(call)

    def _add_approval_request(self, item: Mapping[str, object], path: str) -> None:
        request_id = parse_required_text(item.get("id"), f"{path}.id")
        self._request_ids.add(request_id)
        self._append_server_call(_parse_server_call(item, path, request_id))

    def _add_approval(self, item: Mapping[str, object], path: str) -> None:
        is_allowed = item.get("approve")
        if not isinstance(is_allowed, bool):
            raise InvalidFieldError(f"{path}.approve", "Either true or false.")
        request_path = f"{path}.approval_request_id"
        self.result.approvals.append(
            InputApproval(
                request_id=parse_required_text(item.get("approval_request_id"), request_path),
                is_allowed=is_allowed,
                reason=parse_text(item.get("reason") or "", f"{path}.reason"),
                path=request_path,
            )
        )

    def _add_compaction(self, item: Mapping[str, object], path: str) -> None:
        content_path = f"{path}.encrypted_content"
        self.result.compaction = parse_required_text(item.get("encrypted_content"), content_path)
        # What stands before it is in it.
        self.result.messages.clear()

    def _get_open_answer(self) -> ClientMessage | None:
        """Return the answer that the last item belongs to, if it did."""
        last_message = self.result.messages[-1] if self.result.messages else None
        is_answer = last_message is not None and last_message.role == "assistant"
        return last_message if is_answer and not self._reasoning else None

    def _take_reasoning(self) -> dict[str, object]:
        reasoning, self._reasoning = self._reasoning, {}
        return reasoning


def _build_call(item: Mapping[str, object], path: str, arguments: str) -> ToolCall:
    """Return the call of a client's tool, under the name that the model knows."""
    namespace = parse_text(item.get("namespace") or "", f"{path}.namespace")
    return ToolCall(
        id=parse_required_text(item.get("call_id"), f"{path}.call_id"),
        name=join_name(parse_required_text(item.get("name"), f"{path}.name"), namespace),
        arguments=arguments,
    )


def _write_output(output: object) -> str:
    """Return what came of a call whose output is no text, as a text without data of images."""
    if isinstance(output, str):
        return output
    if isinstance(output, Mapping):
        output = {key: value for key, value in output.items() if key != "image_url"}
    return json.dumps(output, ensure_ascii=False)


def _parse_server_call(item: Mapping[str, object], path: str, call_id: str) -> ToolCall:
    """Return the call of a tool of an MCP server, under the name that the model knows."""
    label = parse_required_text(item.get("server_label"), f"{path}.server_label")
    name = parse_required_text(item.get("name"), f"{path}.name")
    return ToolCall(
        id=call_id,
        name=build_tool_name(label, name),
        arguments=parse_text(item.get("arguments"), f"{path}.arguments"),
    )


def _parse_image(part: Mapping[str, object], path: str, number: int) -> Attachment:
    if part.get("file_id"):
        raise InvalidFieldError(f"{path}.file_id", "Files are not kept here: send the image.")
    return parse_image(part.get("image_url"), f"{path}.image_url", number)


def _parse_file(part: Mapping[str, object], path: str, number: int) -> Attachment:
    return parse_file(part, path)


FILE_READERS = {"input_image": _parse_image, "input_file": _parse_file}
