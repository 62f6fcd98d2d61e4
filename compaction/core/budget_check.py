"""Does a request fit, before it is sent: NeuroLink's check and estimates as plain functions over plain data, for whoever has no Django."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compaction.core.budget import plan
from compaction.core.counting import build_counter
from compaction.core.policy import Policy
from compaction.core.presets import PRESETS
from compaction.core.transcript import TranscriptCall, TranscriptEntry

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
        tool_definitions=sum(_estimate_definition(tool, policy) for tool in tool_definitions),
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
        should_compact=budget is not None and budget.is_over(tokens),
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input if budget else None,
        usage_ratio=tokens / max(1, budget.input) if budget else None,
        breakdown=breakdown,
    )


def estimate_tokens(
    text: str, provider: str = "", is_code: bool = False, *, policy: Policy = NEUROLINK
) -> int:
    """Tokens of a text under a policy, for models of a family. Under neurolink: ceil(characters / 4, or / 3 for code) × family × 1.15."""
    return build_counter(policy, provider).count_text(text, is_code=is_code)


def estimate_messages_tokens(
    messages: Iterable[Mapping[str, Any]], provider: str = "", *, policy: Policy = NEUROLINK
) -> int:
    """Tokens of messages, with what framing each and the whole conversation costs."""
    token_counter = build_counter(policy, provider)
    return policy.estimate.per_conversation + sum(
        token_counter.count_entry(to_entry(message)) for message in messages
    )


def to_entry(message: Mapping[str, Any], seq: int = 0) -> TranscriptEntry:
    """A message as programs write it, as the core reads it; calls as OpenAI nests them or flat, content as text or as parts."""
    calls = tuple(_to_call(call) for call in message.get("tool_calls") or ())
    content, images = _parse_content(message.get("content") or "")
    return TranscriptEntry(
        seq=seq,
        role=str(message.get("role", "user")),
        content=content,
        images=images,
        calls=calls,
        call_id=str(message.get("tool_call_id") or ""),
        tool_name=str(message.get("tool_name") or message.get("name") or ""),
        is_error=bool(message.get("is_error")),
    )


def _parse_content(content: Any) -> tuple[str, int]:
    if isinstance(content, str):
        return content, 0
    texts = [str(part["text"]) for part in content if part.get("type") == "text"]
    return "".join(texts), sum(str(part.get("type", "")).startswith("image") for part in content)


def _to_call(call: Mapping[str, Any]) -> TranscriptCall:
    function = call.get("function") or call
    arguments = function.get("arguments") or ""
    return TranscriptCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=arguments if isinstance(arguments, str) else _dump_json(arguments),
    )


def _estimate_definition(tool: Any, policy: Policy) -> int:
    return (
        build_counter(policy).count_characters(len(_dump_json(tool)), ignore_factor=True)
        if policy.estimate.count_tools
        else 0
    )


def _dump_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
