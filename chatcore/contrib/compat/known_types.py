"""What happens to each type of tool, item and block that clients send, for each API.

Programs send new types before servers know them. One that is not listed here is left out, named in
the header X-Ignored-Fields, and logged once, so that it never ends a conversation.
"""

import logging
import re
from collections.abc import Iterable, Mapping
from enum import StrEnum
from functools import cache

_DATE = re.compile(r"_\d{8}\Z")

logger = logging.getLogger(__name__)


class Handling(StrEnum):
    """What happens to a type."""

    CARRIED = "carried"
    # As a function, since no provider here has such a type; its calls have the client's own form.
    AS_FUNCTION = "carried as a function"
    AS_TEXT = "a text that names it"
    FLATTENED = "its tools are offered under `NAMESPACE__NAME`"
    LIFTED = "its tools are offered, as if they stood in the request"
    PASSED_ON = "passed on to a provider of Anthropic's protocol, which runs it; else left out"
    # Only a provider's own servers run it, or it has no meaning for another model. A search of the
    # web that is left out may be served here (web_search.py).
    LEFT_OUT = "left out"
    REFUSED = "refused"  # the question is about it


RESPONSES_TOOLS: Mapping[str, Handling] = {
    "function": Handling.CARRIED,
    "mcp": Handling.CARRIED,
    "custom": Handling.AS_FUNCTION,
    "tool_search": Handling.AS_FUNCTION,  # that the client runs; one of the provider's is left out
    "namespace": Handling.FLATTENED,
    "apply_patch": Handling.LEFT_OUT,
    "code_interpreter": Handling.LEFT_OUT,
    "computer": Handling.LEFT_OUT,
    "computer_use_preview": Handling.LEFT_OUT,
    "file_search": Handling.LEFT_OUT,
    "image_generation": Handling.LEFT_OUT,
    "local_shell": Handling.LEFT_OUT,
    "programmatic_tool_calling": Handling.LEFT_OUT,
    "shell": Handling.LEFT_OUT,
    "web_search": Handling.PASSED_ON,
    "web_search_2025_08_26": Handling.PASSED_ON,
    "web_search_preview": Handling.PASSED_ON,
    "web_search_preview_2025_03_11": Handling.PASSED_ON,
}
RESPONSES_ITEMS: Mapping[str, Handling] = {
    "message": Handling.CARRIED,
    "agent_message": Handling.CARRIED,  # what one agent of a program writes to another
    "reasoning": Handling.CARRIED,
    "item_reference": Handling.CARRIED,
    "function_call": Handling.CARRIED,
    "function_call_output": Handling.CARRIED,
    "mcp_list_tools": Handling.CARRIED,
    "mcp_call": Handling.CARRIED,
    "mcp_approval_request": Handling.CARRIED,
    "mcp_approval_response": Handling.CARRIED,
    "compaction": Handling.CARRIED,
    "compaction_trigger": Handling.CARRIED,
    "additional_tools": Handling.LIFTED,
    "custom_tool_call": Handling.AS_FUNCTION,
    "custom_tool_call_output": Handling.AS_FUNCTION,
    "tool_search_call": Handling.AS_FUNCTION,
    "tool_search_output": Handling.LIFTED,
    # Calls that a client ran, with what came of them: kept as calls of a function of this name.
    "apply_patch_call": Handling.AS_FUNCTION,
    "apply_patch_call_output": Handling.AS_FUNCTION,
    "computer_call": Handling.AS_FUNCTION,
    "computer_call_output": Handling.AS_FUNCTION,
    "local_shell_call": Handling.AS_FUNCTION,
    "local_shell_call_output": Handling.AS_FUNCTION,
    "shell_call": Handling.AS_FUNCTION,
    "shell_call_output": Handling.AS_FUNCTION,
    # What a provider's servers ran; the answer that follows says what came of it.
    "code_interpreter_call": Handling.LEFT_OUT,
    "configuration_update": Handling.LEFT_OUT,
    "file_search_call": Handling.LEFT_OUT,
    "image_generation_call": Handling.LEFT_OUT,
    "program": Handling.LEFT_OUT,
    "program_output": Handling.LEFT_OUT,
    "web_search_call": Handling.LEFT_OUT,
    "ghost_snapshot": Handling.LEFT_OUT,  # Codex's own note of the state of its files
}
RESPONSES_PARTS: Mapping[str, Handling] = {
    "input_text": Handling.CARRIED,
    "output_text": Handling.CARRIED,
    "summary_text": Handling.CARRIED,
    "reasoning_text": Handling.CARRIED,
    "refusal": Handling.CARRIED,
    "input_image": Handling.CARRIED,
    "input_file": Handling.CARRIED,
    "input_audio": Handling.REFUSED,
}
COMPLETIONS_TOOLS: Mapping[str, Handling] = {
    "function": Handling.CARRIED,
    "web_search": Handling.LEFT_OUT,
    "custom": Handling.AS_FUNCTION,
}
COMPLETIONS_PARTS: Mapping[str, Handling] = {
    "text": Handling.CARRIED,
    "refusal": Handling.CARRIED,
    "image_url": Handling.CARRIED,
    "file": Handling.CARRIED,
    "input_audio": Handling.REFUSED,
}
# Those of Anthropic's own stand here without the date at their end.
MESSAGES_TOOLS: Mapping[str, Handling] = {
    "custom": Handling.CARRIED,
    # The client runs them, and Anthropic's models know their schemas.
    "bash": Handling.AS_FUNCTION,
    "computer": Handling.AS_FUNCTION,
    "memory": Handling.AS_FUNCTION,
    "text_editor": Handling.AS_FUNCTION,
    "web_fetch": Handling.PASSED_ON,
    "web_search": Handling.PASSED_ON,
    "advisor": Handling.LEFT_OUT,
    "code_execution": Handling.LEFT_OUT,
    "mcp_toolset": Handling.LEFT_OUT,
    "tool_search_tool_bm25": Handling.LEFT_OUT,
    "tool_search_tool_regex": Handling.LEFT_OUT,
}
# Other choices of a tool are left out: the model may call any tool, or none.
COMPLETIONS_CHOICES: Mapping[str, Handling] = {
    "function": Handling.CARRIED,
    "allowed_tools": Handling.CARRIED,
    "custom": Handling.AS_FUNCTION,
}
MESSAGES_CHOICES: Mapping[str, Handling] = {
    "auto": Handling.CARRIED,
    "any": Handling.CARRIED,
    "tool": Handling.CARRIED,
    "none": Handling.CARRIED,
}
MESSAGES_BLOCKS: Mapping[str, Handling] = {
    "text": Handling.CARRIED,
    "image": Handling.CARRIED,
    "document": Handling.CARRIED,
    "search_result": Handling.CARRIED,
    "tool_use": Handling.CARRIED,
    "tool_result": Handling.CARRIED,
    "thinking": Handling.CARRIED,
    "redacted_thinking": Handling.CARRIED,
    "compaction": Handling.CARRIED,
    "tool_reference": Handling.AS_TEXT,
    # What a provider's servers ran; the answer that follows says what came of it.
    "server_tool_use": Handling.LEFT_OUT,
    "web_search_tool_result": Handling.LEFT_OUT,
    "web_fetch_tool_result": Handling.LEFT_OUT,
    "code_execution_tool_result": Handling.LEFT_OUT,
    "bash_code_execution_tool_result": Handling.LEFT_OUT,
    "text_editor_code_execution_tool_result": Handling.LEFT_OUT,
    "tool_search_tool_result": Handling.LEFT_OUT,
    "mcp_tool_use": Handling.LEFT_OUT,
    "mcp_tool_result": Handling.LEFT_OUT,
    "container_upload": Handling.LEFT_OUT,
}
TABLES: Mapping[str, Mapping[str, Handling]] = {
    "responses.tools": RESPONSES_TOOLS,
    "responses.input": RESPONSES_ITEMS,
    "chat_completions.tools": COMPLETIONS_TOOLS,
    "chat_completions.content": COMPLETIONS_PARTS,
    "chat_completions.tool_choice": COMPLETIONS_CHOICES,
    "responses.content": RESPONSES_PARTS,
    "messages.tools": MESSAGES_TOOLS,
    "messages.tool_choice": MESSAGES_CHOICES,
    "messages.content": MESSAGES_BLOCKS,
}


def find_handling(table: str, type: str) -> Handling:
    """Return what happens to a type of a table; one that is not known is logged once."""
    handling = TABLES[table].get(type) or TABLES[table].get(drop_date(type))
    if handling is None:
        log_unknown(table, type[:64])
        return Handling.LEFT_OUT
    return handling


def name_unknown_choice(table: str, choice: object) -> str:
    """Return the name of a choice of a tool whose type is not known; empty for another one."""
    type = choice.get("type") if isinstance(choice, Mapping) else None
    if not isinstance(type, str) or find_handling(table, type) is not Handling.LEFT_OUT:
        return ""
    return f"tool_choice.{type[:64]}"


def describe_left_out(types: Iterable[str]) -> str:
    """Return what stands in place of a user's message of which nothing else is left."""
    names = ", ".join(dict.fromkeys(type[:64] for type in types))
    return f"[Left out, because it is not supported here: {names}]" if names else ""


def drop_date(type: str) -> str:
    """Return a type of Anthropic's without the date of its version."""
    return _DATE.sub("", type)


@cache
def log_unknown(table: str, type: str) -> None:
    """Log once that a type, or a field, of a program is not known."""
    logger.warning("%s of the type %r are not known and are left out", table, type)
