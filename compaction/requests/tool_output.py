"""How much of a tool's output is stored, by the session's policy. What CHATCORE["TOOL_OUTPUT"] names."""

from dataclasses import dataclass
from typing import Any

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core import tool_output
from compaction.core.presets import ONECLAW


@dataclass(frozen=True, slots=True)
class TruncatedOutput:
    """What is stored in the message; how long it was, if it was cut; and the whole, where the policy keeps it."""

    content: str
    original_chars: int | None
    full_text: str | None


def truncate_output(session: Any, tool_name: str, text: str) -> TruncatedOutput:
    """Cut an output as the session's policy says (`tool_result`), for all tools alike. One query for the policy; never raises."""
    facts = backend_registry.get_backend().load_session_facts(session.pk)
    policy = policies.choose_policy(facts.policy, facts.model_policy)[1] if facts else ONECLAW
    result = tool_output.truncate_output(text, policy.tool_result)
    keeps_whole = policy.tool_result.spill and result.content != text
    return TruncatedOutput(result.content, result.original_chars, text if keeps_whole else None)
