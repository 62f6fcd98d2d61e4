"""Servers that refuse what the real ones refuse: families, each one's rules, and who tells them.

A rule yields a sentence for each place where a request's body breaks it. The rules come from
documents, templates and reports, not from a real server; `docs/providers.md` says of which kind.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from chatcore.providers import anthropic, openai
from chatcore.providers.base import Connection, Request, Tool
from chatcore.providers.dialects import find_dialect
from tests.support.scripted_wire import Reply

Body = dict[str, Any]
Rule = Callable[[Body], Iterator[str]]

LLAMA_CPP = "https://github.com/ggml-org/llama.cpp/tree/master/models/templates"
LOOK = Tool(name="look", description="Look at it.", parameters={"type": "object"})


@dataclass(frozen=True, kw_only=True)
class Family:
    """A family of servers. `source` tells its rules: a document, code, or a report of users."""

    name: str
    rules: tuple[Rule, ...]
    source: str
    surety: str
    protocol: str = "openai"
    model: str = "test-model"
    base_url: str = "http://127.0.0.1/v1"

    @property
    def knows_tools(self) -> bool:
        """False if the models of this family call no tools."""
        return refuse_tools not in self.rules

    def find_refusals(self, body: Body) -> list[str]:
        """Return why this server refuses a request; nothing if it takes it."""
        basic_rules = _ANTHROPIC_RULES if self.protocol == "anthropic" else _OPENAI_RULES
        return [text for rule in (*basic_rules, *self.rules) for text in rule(body)]

    def answer(self, reply: Reply) -> Callable[[Body], Reply]:
        """Return what a scripted server of this family does with a request."""

        def answer(body: Body) -> Reply:
            refusals = self.find_refusals(body)
            return Reply(status=400, text=refusals[0]) if refusals else reply

        return answer


# What every server of the protocol refuses.


def check_results(body: Body) -> Iterator[str]:
    """Results follow their calls directly, all of them; a result has its call; ids are unique."""
    pending: list[str] = []
    used_ids: set[str] = set()
    for index, message in enumerate(body["messages"]):
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                yield f"messages with role 'tool' must be a response to a preceding call ({index})"
            else:
                pending.remove(message["tool_call_id"])
            continue
        if pending:
            yield f"An assistant message with 'tool_calls' must be followed by results ({index})"
        pending = [call["id"] for call in message.get("tool_calls", ())]
        if len(set(pending)) < len(pending) or used_ids & set(pending):
            yield f"Duplicate tool call id ({index})"
        used_ids |= set(pending)
    if pending:
        yield "An assistant message with 'tool_calls' must be followed by results (the end)"


def check_openai_calls(body: Body) -> Iterator[str]:
    """Ids of at most 40 characters, names of 64, JSON arguments, one to 128 calls."""
    for index, message in enumerate(body["messages"]):
        calls = message.get("tool_calls", [])
        if "tool_calls" in message and not 0 < len(calls) <= 128:
            yield f"array_above_max_length: messages[{index}].tool_calls"
        for call in calls:
            if not 0 < len(call["id"]) <= 40:
                yield f"string_above_max_length: messages[{index}].tool_calls.id"
            if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call["function"]["name"]):
                yield f"Invalid name: messages[{index}].tool_calls.function.name"
            if not _is_json_object(call["function"]["arguments"]):
                yield f"invalid function arguments json string: messages[{index}]"


def check_openai_lists(body: Body) -> Iterator[str]:
    """No empty list of messages or tools, no choice of a tool without tools, no silent message."""
    if not body["messages"]:
        yield "Invalid 'messages': empty array"
    if body.get("tools") == []:
        yield "`tools` must not be an empty array"
    if body.get("tool_choice") not in (None, "none") and "tools" not in body:
        yield "When using `tool_choice`, `tools` must be set."
    for index, message in enumerate(body["messages"]):
        if not message.get("tool_calls") and not message.get("content"):
            yield f"messages[{index}] must have either content or tool_calls"


def check_anthropic_roles(body: Body) -> Iterator[str]:
    """Roles alternate, the user's first."""
    for index, message in enumerate(body["messages"]):
        if message["role"] != ("user", "assistant")[index % 2]:
            yield f"messages: roles must alternate ({index})"


def check_anthropic_texts(body: Body) -> Iterator[str]:
    """No message is empty, and no text is blank."""
    system = body.get("system")
    if system == "" or any(
        not block["text"].strip() for block in (system if isinstance(system, list) else ())
    ):
        yield "system: text content blocks must be non-empty"
    for index, message in enumerate(body["messages"]):
        blocks = message["content"]
        if not blocks:
            yield f"all messages must have non-empty content ({index})"
        for block in (*blocks, *_list_result_blocks(blocks)):
            if block["type"] == "text" and not block["text"].strip():
                yield f"text content blocks must contain non-whitespace text ({index})"


def check_anthropic_pairs(body: Body) -> Iterator[str]:
    """All results open the message after their calls, and each id occurs once."""
    pending: list[str] = []
    used_ids: set[str] = set()
    for index, message in enumerate(body["messages"]):
        blocks = message["content"]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(results) != sorted(pending):
            yield f"`tool_use` ids were found without `tool_result` blocks after ({index})"
        if any(block["type"] != "tool_result" for block in blocks[: len(results)]):
            yield f"tool_result blocks must come first ({index})"
        pending = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if used_ids & set(pending) or len(set(pending)) < len(pending):
            yield f"`tool_use` ids must be unique ({index})"
        if not all(re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", call_id) for call_id in pending):
            yield f"`tool_use` ids must match a pattern ({index})"
        used_ids |= set(pending)
    if pending:
        yield "`tool_use` ids were found without `tool_result` blocks after (the end)"


_OPENAI_RULES: tuple[Rule, ...] = (check_results, check_openai_calls, check_openai_lists)
_ANTHROPIC_RULES: tuple[Rule, ...] = (
    check_anthropic_roles,
    check_anthropic_texts,
    check_anthropic_pairs,
)


# What only some refuse.


def refuse_repeated_roles(body: Body) -> Iterator[str]:
    """User and assistant by turns, the user's first; calls and results are not counted."""
    messages = [message for message in body["messages"] if message["role"] != "system"]
    counted = [
        message["role"]
        for message in messages
        if message["role"] != "tool" and not message.get("tool_calls")
    ]
    if any(role != ("user", "assistant")[index % 2] for index, role in enumerate(counted)):
        yield "After the optional system message, conversation roles must alternate user/assistant"


def refuse_any_repeated_role(body: Body) -> Iterator[str]:
    """No two equal roles in a row, but for results; the user's first."""
    roles = [message["role"] for message in body["messages"] if message["role"] != "system"]
    if roles and roles[0] != "user":
        yield "Conversation roles must alternate user/assistant: the first is the user's"
    for first, second in itertools.pairwise(roles):
        if first == second and first != "tool":
            yield f"Conversation roles must alternate: {first} twice"


def refuse_second_system(body: Body) -> Iterator[str]:
    """One system message at most, and only as the first."""
    for index, message in enumerate(body["messages"]):
        if message["role"] == "system" and index:
            yield "System message must be at the beginning."


def require_question(body: Body) -> Iterator[str]:
    if not any(message["role"] == "user" for message in body["messages"]):
        yield "No user query found in messages."


def refuse_user_after_tool(body: Body) -> Iterator[str]:
    roles = [message["role"] for message in body["messages"]]
    if ("tool", "user") in itertools.pairwise(roles):
        yield "Unexpected role 'user' after role 'tool'"


def require_short_ids(body: Body) -> Iterator[str]:
    for call_id in _list_ids(body):
        if not re.fullmatch(r"[a-zA-Z0-9]{9}", call_id):
            yield f"Tool call id was {call_id} but must be a-z, A-Z, 0-9, with a length of 9."


def require_kimi_ids(body: Body) -> Iterator[str]:
    """Not refused by the server, but written into the prompt: another form confuses the model."""
    calls = [call for message in body["messages"] for call in message.get("tool_calls", ())]
    for index, call in enumerate(calls):
        expected_id = f"functions.{call['function']['name']}:{index}"
        if call["id"] != expected_id and len(expected_id) <= 40:
            yield f"The id {call['id']} is not functions.name:index"


def refuse_null_content(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        if not isinstance(message.get("content"), str | list):
            yield f"Invalid 'content': messages[{index}] must be a string"


def refuse_empty_content(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        content = message.get("content")
        texts = [content] if isinstance(content, str) else []
        if isinstance(content, list):
            texts = [part["text"] for part in content if part["type"] == "text"]
        if any(not text.strip() for text in texts):
            yield f"Invalid request: text content is empty (messages[{index}])"


def refuse_unknown_keys(body: Body) -> Iterator[str]:
    known = {"role", "content", "tool_calls", "tool_call_id", "name", "prefix"}
    for index, message in enumerate(body["messages"]):
        for key in message.keys() - known:
            yield f"Extra inputs are not permitted, field: 'messages[{index}].{key}'"
        for call in message.get("tool_calls", ()):
            for key in call.keys() - {"id", "type", "function", "index"}:
                yield f"Extra inputs are not permitted, field: 'messages[{index}].{key}'"


def require_reasoning_of_calls(body: Body) -> Iterator[str]:
    for index, message in enumerate(body["messages"]):
        if message.get("tool_calls") and not isinstance(message.get("reasoning_content"), str):
            yield (
                "thinking is enabled but reasoning_content is missing in assistant tool call"
                f" message at index {index}"
            )


def require_all_reasoning(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        is_answer = message["role"] == "assistant"
        if is_answer and not isinstance(message.get("reasoning_content"), str):
            yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def require_signatures(body: Body) -> Iterator[str]:
    """The first call of each step has a signature, in the running turn at least."""
    for index, message in enumerate(body["messages"]):
        for call in message.get("tool_calls", ())[:1]:
            google = call.get("extra_content", {}).get("google", {})
            if not google.get("thought_signature"):
                yield f"Function call is missing a thought_signature in message {index}."


def refuse_calls_without_tools(body: Body) -> Iterator[str]:
    blocks = [
        block
        for message in body["messages"]
        if isinstance(message.get("content"), list)
        for block in message["content"]
    ]
    has_calls = any(block.get("type") in ("tool_use", "tool_result") for block in blocks)
    if "tools" not in body and (has_calls or _list_ids(body)):
        yield "The toolConfig field must be defined when using toolUse and toolResult blocks."


def refuse_parallel_calls(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        if "tool_calls" in message and len(message["tool_calls"]) != 1:
            yield "This model only supports single tool-calls at once!"


def refuse_tools(body: Body) -> Iterator[str]:
    if "tools" in body or _list_ids(body):
        yield "test-model does not support tools"


def refuse_reasoned_text(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        if (
            message.get("tool_calls")
            and message.get("content")
            and message.get("reasoning_content")
        ):
            yield "Cannot pass both content and thinking in an assistant message with tool calls!"


def refuse_empty_error_results(body: Body) -> Iterator[str]:
    for message in body["messages"]:
        for block in message["content"]:
            if block["type"] == "tool_result" and not block.get("content"):
                yield "The content field at messages.N.content.0.toolResult cannot be empty"


def _is_json_object(text: Any) -> bool:
    try:
        return isinstance(text, str) and isinstance(json.loads(text), dict)
    except ValueError:
        return False


def _list_result_blocks(blocks: Iterable[Body]) -> Iterator[Body]:
    for block in blocks:
        if isinstance(block.get("content"), list):
            yield from block["content"]


def _list_ids(body: Body) -> list[str]:
    """Return the ids of the calls, in OpenAI's protocol."""
    return [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]


_MISTRAL_RULES = (
    refuse_repeated_roles,
    refuse_second_system,
    refuse_user_after_tool,
    require_short_ids,
    refuse_unknown_keys,
)
# A server that is known by no name, with every rule that contradicts no other one.
UNKNOWN_SERVERS = {
    "openai": Family(
        name="any server of OpenAI's protocol",
        rules=(
            refuse_any_repeated_role,
            refuse_second_system,
            require_question,
            refuse_user_after_tool,
            require_short_ids,
            refuse_null_content,
            refuse_calls_without_tools,
        ),
        source=LLAMA_CPP,
        surety="code",
    ),
    "anthropic": Family(
        name="any server of Anthropic's protocol",
        rules=(refuse_calls_without_tools, refuse_empty_error_results),
        source="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html",
        surety="doc",
        protocol="anthropic",
    ),
}
FAMILIES = (
    *UNKNOWN_SERVERS.values(),
    Family(
        name="OpenAI",
        rules=(refuse_unknown_keys,),
        source="https://github.com/vercel/ai/issues/5171",
        surety="report",
        model="gpt-4o",
        base_url="https://api.openai.com/v1",
    ),
    Family(
        name="Azure OpenAI",
        rules=(refuse_unknown_keys,),
        source="https://github.com/tensorzero/tensorzero/issues/4880",
        surety="report",
        model="my-deployment",
        base_url="https://mine.openai.azure.com/openai/v1",
    ),
    Family(
        name="Google Gemini",
        rules=(refuse_any_repeated_role, require_signatures),
        source="https://github.com/continuedev/continue/pull/8865",
        surety="report",
        model="gemini-3-pro",
    ),
    Family(
        name="OpenRouter",
        rules=(refuse_any_repeated_role, refuse_second_system),
        source="https://openrouter.ai/docs/use-cases/reasoning-tokens",
        surety="doc",
        model="meta-llama/llama-4",
        base_url="https://openrouter.ai/api/v1",
    ),
    Family(
        name="DeepSeek",
        rules=(require_all_reasoning, refuse_any_repeated_role),
        source="https://api-docs.deepseek.com/guides/thinking_mode",
        surety="doc",
        model="deepseek-v4",
    ),
    Family(
        name="Moonshot Kimi",
        rules=(require_reasoning_of_calls, refuse_empty_content, require_kimi_ids),
        source="https://github.com/MoonshotAI/kimi-cli/issues/2621",
        surety="report",
        model="kimi-k2.5",
    ),
    Family(
        name="Zhipu GLM",
        rules=(require_question, refuse_null_content),
        source="https://github.com/anomalyco/opencode/issues/2557",
        surety="report",
        model="glm-4.6",
    ),
    Family(
        name="MiniMax",
        rules=(refuse_second_system, refuse_null_content),
        source="https://github.com/MiniMax-AI/MiniMax-M2/issues/51",
        surety="report",
        model="minimax-m2",
    ),
    Family(
        name="Alibaba DashScope",
        rules=(refuse_second_system, require_question),
        source="https://www.alibabacloud.com/help/model-studio/error-code",
        surety="doc",
        model="qwen3.5-plus",
    ),
    Family(
        name="Mistral",
        rules=_MISTRAL_RULES,
        source="https://github.com/mistralai/mistral-common/blob/main/src/mistral_common/protocol/instruct/validator.py",
        surety="code",
        model="mistral-large-latest",
    ),
    Family(
        name="Groq",
        rules=(refuse_unknown_keys,),
        source="https://github.com/karthink/gptel/issues/774",
        surety="report",
        model="llama-4-scout",
        base_url="https://api.groq.com/openai/v1",
    ),
    Family(
        name="Together",
        rules=(refuse_any_repeated_role, refuse_second_system, refuse_parallel_calls),
        source="https://github.com/charmbracelet/crush/issues/279",
        surety="report",
        model="meta-llama/Llama-3.3-70B-Instruct-Turbo",
    ),
    Family(
        name="xAI",
        rules=(),
        source="https://docs.apiyi.com/en/api-capabilities/grok/chat",
        surety="report",
        model="grok-4.3",
    ),
    Family(
        name="Perplexity",
        rules=(refuse_tools, refuse_any_repeated_role, refuse_second_system),
        source="https://github.com/perplexityai/api-discussion/issues/265",
        surety="report",
        model="sonar",
    ),
    Family(
        name="Claude behind a gateway of OpenAI's protocol",
        rules=(refuse_empty_content, refuse_calls_without_tools),
        source="https://github.com/NousResearch/hermes-agent/pull/11929",
        surety="report",
        model="anthropic/claude-sonnet-4.5",
    ),
    Family(
        name="vLLM, Gemma 3",
        rules=(refuse_tools, refuse_any_repeated_role, refuse_second_system),
        source="https://github.com/huggingface/text-generation-inference/issues/3198",
        surety="report",
        model="google/gemma-3-27b-it",
    ),
    Family(
        name="vLLM, Mistral Small",
        rules=_MISTRAL_RULES,
        source=LLAMA_CPP,
        surety="code",
        model="mistralai/Mistral-Small-3.1-24B-Instruct-2503",
    ),
    Family(
        name="vLLM, Qwen 3.5",
        rules=(refuse_second_system, require_question),
        source="https://github.com/anomalyco/opencode/issues/16560",
        surety="report",
        model="Qwen/Qwen3.5-35B",
    ),
    Family(
        name="llama.cpp, Llama 3",
        rules=(refuse_parallel_calls, refuse_second_system),
        source=LLAMA_CPP,
        surety="code",
        model="llama-3.1-8b-instruct",
    ),
    Family(
        name="llama.cpp, gpt-oss",
        rules=(refuse_reasoned_text,),
        source="https://github.com/ggml-org/llama.cpp/issues/17040",
        surety="report",
        model="gpt-oss-20b",
    ),
    Family(
        name="LM Studio",
        rules=(refuse_null_content, refuse_any_repeated_role),
        source="https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/261",
        surety="report",
        model="devstral-2",
    ),
    Family(
        name="Ollama",
        rules=(refuse_null_content,),
        source="https://github.com/ollama/ollama/blob/main/openai/openai.go",
        surety="code",
        model="qwen3:8b",
    ),
    Family(
        name="SGLang",
        rules=(refuse_second_system,),
        source="https://github.com/sgl-project/sglang/blob/main/python/sglang/srt/entrypoints/openai/serving_chat.py",
        surety="code",
        model="qwen3-32b",
    ),
    Family(
        name="TGI",
        rules=(refuse_any_repeated_role, refuse_second_system, refuse_tools),
        source="https://github.com/huggingface/text-generation-inference/issues/3198",
        surety="report",
        model="gemma-3-12b",
    ),
    Family(
        name="LocalAI",
        rules=(refuse_null_content,),
        source="https://github.com/lfnovo/open-notebook/issues/470",
        surety="report",
        model="local",
    ),
    Family(
        name="mlx-lm",
        rules=(refuse_null_content,),
        source="https://github.com/ml-explore/mlx-lm/issues/185",
        surety="report",
        model="mlx-community/qwen",
    ),
    Family(
        name="Anthropic",
        rules=(refuse_calls_without_tools,),
        source="https://github.com/anthropics/claude-code/issues/5989",
        surety="report",
        protocol="anthropic",
        model="claude-opus-4-5",
    ),
    Family(
        name="Amazon Bedrock",
        rules=(refuse_calls_without_tools, refuse_empty_error_results),
        source="https://github.com/vxcontrol/pentagi/pull/196",
        surety="report",
        protocol="anthropic",
        model="anthropic.claude-opus-4-5",
    ),
    Family(
        name="Google Vertex",
        rules=(refuse_calls_without_tools,),
        source="https://platform.claude.com/docs/en/build-with-claude/vision",
        surety="doc",
        protocol="anthropic",
        model="claude-opus-4-5@vertex",
    ),
)


def build_body(family: Family, request: Request) -> Body:
    """Return the messages and the tools of a request as this family is sent them."""
    request = replace(request, model=family.model)
    connection = Connection(protocol=family.protocol, base_url=family.base_url, api_key="")
    if family.protocol == "anthropic":
        body = {"messages": anthropic.build_messages(request)}
        system = anthropic.build_system(request)
        if system:
            body["system"] = system  # type: ignore[assignment]
        if request.tools:
            body["tools"] = anthropic.build_tools(request)
        return body
    dialect = find_dialect(connection, family.model)
    body = {"messages": openai.build_messages(request, dialect)}
    if request.tools:
        body["tools"] = openai.build_tools(request)
    return body


def find_refusals(request: Request) -> list[str]:
    """Return what any family refuses in a request, with its tools and without them.

    A history that says nothing cannot be sent to anybody.
    """
    refusals = []
    for tools in (request.tools or [LOOK], []):
        for family in FAMILIES:
            if family.knows_tools or not tools:
                body = build_body(family, replace(request, tools=tools))
                says_something = any(each["role"] != "system" for each in body["messages"])
                found = family.find_refusals(body) if says_something else []
                refusals += [f"{family.name}: {refusal}" for refusal in found]
    return refusals
