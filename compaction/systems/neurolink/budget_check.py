"""Check whether a request fits before it is sent, as plain functions for programs without Django.

The functions and their results follow NeuroLink (README.md).
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from compaction.core.budget import Budget, plan
from compaction.core.estimate import build_counter
from compaction.core.policy import Policy
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.systems.neurolink.preset import NEUROLINK

ELLIPSIS = "..."
MIN_SHARE = 0.5  # a nicer end may cost up to half of what would fit

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？\n]")
_SPACE = re.compile(r"\s")


@dataclass(frozen=True, kw_only=True, slots=True)
class Breakdown:
    """The tokens of each part of a request."""

    system_prompt: int = 0
    conversation_history: int = 0
    current_prompt: int = 0
    tool_definitions: int = 0
    file_attachments: int = 0

    @property
    def total(self) -> int:
        """The tokens of the whole request."""
        return sum(asdict(self).values())


@dataclass(frozen=True, kw_only=True, slots=True)
class BudgetCheck:
    """The result of a check.

    If the window is unknown, every request fits, and `available_input_tokens` and `usage_ratio` are
    None.
    """

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
    max_input: int | None = None,
    output_reserve: int | None = None,
    system_prompt: str = "",
    conversation_messages: Sequence[Mapping[str, object]] = (),
    current_prompt: str = "",
    tool_definitions: Iterable[object] = (),
    file_attachments: Iterable[Mapping[str, object]] = (),
    compaction_threshold: float | None = None,
) -> BudgetCheck:
    """Measure the parts of a request against a context window.

    `window` is in tokens; None takes the one that the policy assumes. `max_input` is the most that
    the model takes as a request, if that is less. `provider` is the model's family. Messages are
    mappings with `role`, `content` and perhaps `tool_calls`; files are mappings with `content`.
    Raises PolicyError for a threshold that the policy cannot have. (NeuroLink, checkContextBudget)
    """
    if compaction_threshold is not None:
        policy = Policy.parse({"trigger": {"threshold": compaction_threshold}}, policy)

    def count(text: str) -> int:
        return estimate_tokens(text, provider, policy=policy) if text else 0

    history_tokens = 0
    if conversation_messages:
        history_tokens = estimate_messages_tokens(conversation_messages, provider, policy=policy)
    file_tokens = [
        estimate_tokens(str(file["content"]), provider, policy=policy) for file in file_attachments
    ]
    breakdown = Breakdown(
        system_prompt=count(system_prompt),
        conversation_history=history_tokens,
        current_prompt=count(current_prompt),
        tool_definitions=sum(_estimate_definition(tool, policy) for tool in tool_definitions),
        file_attachments=sum(file_tokens),
    )
    budget = plan(
        policy,
        window,
        max_input=max_input,
        output_reserve=output_reserve,
        max_tokens=max_tokens,
        family=provider,
    )
    return _check_breakdown(breakdown, budget)


def _check_breakdown(breakdown: Breakdown, budget: Budget | None) -> BudgetCheck:
    tokens = breakdown.total
    if budget is None:
        return BudgetCheck(
            within_budget=True,
            should_compact=False,
            estimated_input_tokens=tokens,
            available_input_tokens=None,
            usage_ratio=None,
            breakdown=breakdown,
        )
    return BudgetCheck(
        within_budget=tokens <= min(budget.input, budget.request_limit),
        should_compact=budget.is_over(tokens),
        estimated_input_tokens=tokens,
        available_input_tokens=budget.input,
        usage_ratio=tokens / max(1, budget.input),
        breakdown=breakdown,
    )


def estimate_tokens(
    text: str, provider: str = "", is_code: bool = False, *, policy: Policy = NEUROLINK
) -> int:
    """Return the tokens of a text under a policy, for models of a family.

    Under `neurolink` that is ceil(characters / 4), or / 3 for code, times the family's multiplier
    and 1.15. (NeuroLink, Token Estimation)
    """
    return build_counter(policy, provider).count_text(text, is_code=is_code)


def estimate_messages_tokens(
    messages: Iterable[Mapping[str, object]], provider: str = "", *, policy: Policy = NEUROLINK
) -> int:
    """Return the tokens of messages, with the framing of each and of the whole conversation."""
    token_counter = build_counter(policy, provider)
    return policy.estimate.per_conversation + sum(
        token_counter.count_entry(to_entry(message)) for message in messages
    )


def to_entry(message: Mapping[str, Any], seq: int = 0) -> TranscriptEntry:
    """Convert a message as programs write it to an entry of the core.

    Calls may be nested in `function`, as OpenAI has them, or flat; content may be text or parts.
    """
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


def _estimate_definition(tool: object, policy: Policy) -> int:
    if not policy.estimate.count_tools:
        return 0
    return build_counter(policy).count_characters(len(_dump_json(tool)), ignore_factor=True)


def _dump_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def truncate_to_token_budget(
    text: str, max_tokens: int, provider: str = "", *, policy: Policy = NEUROLINK
) -> tuple[str, bool]:
    """Return the text, or as much of its beginning as fits with "..." after it, and if it was cut.

    `provider` is the model's family. Returns an empty text if not even the dots fit.
    (NeuroLink, truncateToTokenBudget)
    """
    token_counter = build_counter(policy, provider)
    if token_counter.count_text(text) <= max_tokens:
        return text, False

    def count_prefix(length: int) -> int:
        return token_counter.count_text(text[:length] + ELLIPSIS)

    # The count grows with the length, so a binary search finds the longest beginning that fits.
    max_length = bisect_right(range(len(text) + 1), max_tokens, key=count_prefix) - 1
    if max_length < 0:
        return "", True
    return text[: _find_nice_end(text, max_length)].rstrip() + ELLIPSIS, True


def _find_nice_end(text: str, max_length: int) -> int:
    """Return where to cut: after a sentence, else before a space, else at the maximum."""
    min_length = int(max_length * MIN_SHARE)
    sentence_ends = [match.end() for match in _SENTENCE_END.finditer(text, min_length, max_length)]
    if sentence_ends:
        return sentence_ends[-1]
    if max_length < len(text) and text[max_length].isspace():
        return max_length
    spaces = [match.start() for match in _SPACE.finditer(text, min_length, max_length)]
    return spaces[-1] if spaces and spaces[-1] else max_length
