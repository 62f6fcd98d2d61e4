"""Does a request fit, before it is sent: NeuroLink's check and estimates as plain functions over plain data, for whoever has no Django."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compaction.core.budget import plan
from compaction.core.counting import counter
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.transcript import Call, Entry

NEUROLINK = PRESETS["neurolink"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """What the tokens of a request are spent on."""

    system_prompt: int = 0
    conversation_history: int = 0
    current_prompt: int = 0
    tool_definitions: int = 0
    file_attachments: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return sum(asdict(self).values())


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetCheck:
    """Whether a request fits. `available_input_tokens` and `usage_ratio` are None where the window is unknown: then all fits."""

    within_budget: bool
    should_compact: bool
    estimated_input_tokens: int
    available_input_tokens: int | None
    usage_ratio: float | None
    breakdown: Breakdown


def check_context_budget(
    *,
    window: int | None = None,
    provider: str = "",
    policy: Policy = NEUROLINK,
    max_tokens: int | None = None,
    output_reserve: int | None = None,
    system_prompt: str = "",
    conversation_messages: Sequence[Mapping[str, Any]] = (),
    current_prompt: str = "",
    tool_definitions: Iterable[Any] = (),
    file_attachments: Iterable[Mapping[str, Any]] = (),
    compaction_threshold: float | None = None,
) -> BudgetCheck:
    """Measure a request of so many parts against a window in tokens (None: what the policy assumes), under a policy.

    `provider` is the model's family. Messages are mappings with `role` and `content`, and `tool_calls` where there are any; files have
    `content`. Raises PolicyError for a threshold that the policy cannot take. NeuroLink, checkContextBudget.
    """
    if compaction_threshold is not None:
        policy = Policy.parse({"trigger": {"threshold": compaction_threshold}}, policy)
    breakdown = Breakdown(
        system_prompt=estimate_tokens(system_prompt, provider, policy=policy)
        if system_prompt
        else 0,
        conversation_history=estimate_messages_tokens(
            conversation_messages, provider, policy=policy
        )
        if conversation_messages
        else 0,
        current_prompt=estimate_tokens(current_prompt, provider, policy=policy)
        if current_prompt
        else 0,
        tool_definitions=sum(_definition(tool, policy) for tool in tool_definitions),
        file_attachments=sum(
            estimate_tokens(str(file["content"]), provider, policy=policy)
            for file in file_attachments
        ),
    )
    budget, tokens = (
        plan(policy, window, output_reserve=output_reserve, max_tokens=max_tokens, family=provider),
        breakdown.total,
    )
    return BudgetCheck(
        within_budget=budget is None or tokens <= budget.input,
        should_compact=budget is not None and budget.over(tokens),
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input if budget else None,
        usage_ratio=tokens / max(1, budget.input) if budget else None,
        breakdown=breakdown,
    )


def estimate_tokens(
    text: str, provider: str = "", is_code: bool = False, *, policy: Policy = NEUROLINK
) -> int:
    """Tokens of a text under a policy, for models of a family. Under neurolink: ceil(characters / 4, or / 3 for code) × family × 1.15."""
    return counter(policy, provider).text(text, code=is_code)


def estimate_messages_tokens(
    messages: Iterable[Mapping[str, Any]], provider: str = "", *, policy: Policy = NEUROLINK
) -> int:
    """Tokens of messages, with what framing each and the whole conversation costs."""
    count = counter(policy, provider)
    return policy.estimate.per_conversation + sum(
        count.entry(entry_of(message)) for message in messages
    )


def entry_of(message: Mapping[str, Any], seq: int = 0) -> Entry:
    """A message as programs write it, as the core reads it; calls as OpenAI nests them or flat, content as text or as parts."""
    calls = tuple(_call(call) for call in message.get("tool_calls") or ())
    content, images = _content(message.get("content") or "")
    return Entry(
        seq=seq,
        role=str(message.get("role", "user")),
        content=content,
        images=images,
        calls=calls,
        call_id=str(message.get("tool_call_id") or ""),
        tool_name=str(message.get("tool_name") or message.get("name") or ""),
        is_error=bool(message.get("is_error")),
    )


def _content(content: Any) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    texts = [str(part["text"]) for part in content if part.get("type") == "text"]
    return "".join(texts), sum(str(part.get("type", "")).startswith("image") for part in content)


def _call(call: Mapping[str, Any]) -> Call:
    said = call.get("function") or call
    arguments = said.get("arguments") or ""
    return Call(
        id=str(call.get("id") or ""),
        name=str(said.get("name") or ""),
        arguments=arguments if isinstance(arguments, str) else _compact(arguments),
    )


def _definition(tool: Any, policy: Policy) -> int:
    return (
        counter(policy).characters(len(_compact(tool)), bare=True)
        if policy.estimate.count_tools
        else 0
    )


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
