"""How much of a tool's output is stored, by the session's policy. What CHATCORE["TOOL_OUTPUT"] names."""

from dataclasses import dataclass
from typing import Any

from compaction import policies
from compaction.backends import registry as backend_registry
from compaction.core import tool_output
from compaction.core.presets import ONECLAW


@dataclass(frozen=True, slots=True)
class Cut:
    """What is stored in the message; how long it was, if it was cut; and the whole, where the policy keeps it."""

    content: str
    original_chars: int | None
    whole: str | None


def cut(session: Any, tool_name: str, text: str) -> Cut:
    """Cut an output as the session's policy says (`tool_result`), for all tools alike. One query for the policy; never raises."""
    subject = backend_registry.get().subject(session.pk)
    policy = policies.choose(subject.policy, subject.model_policy)[1] if subject else ONECLAW
    done = tool_output.cut(text, policy.tool_result)
    spilled = policy.tool_result.spill and done.content != text
    return Cut(done.content, done.original_chars, text if spilled else None)
