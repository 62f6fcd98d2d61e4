"""Decide how much of a tool's output is stored, by the policy of its session."""

from dataclasses import dataclass

from chatcore.models import Session
from compaction import policies
from compaction.core import tool_output
from compaction.sessions.facts import list_policy_names


@dataclass(frozen=True, slots=True)
class TruncatedOutput:
    """The stored part of a tool's output.

    `original_chars` is the length of the whole output if it was cut, and `full_text` the whole
    output if the policy keeps it in a file; both are None otherwise.
    """

    content: str
    original_chars: int | None
    full_text: str | None


def truncate_output(session: Session, text: str) -> TruncatedOutput:
    """Cut a tool's output as the `tool_result` group of the session's policy says. Never raises.

    An import asks for each of its results, so this takes no query but that of a stored policy.
    """
    policy_names = list_policy_names(session)
    _, policy = policies.choose_policy(*policy_names)
    result = tool_output.truncate_output(text, policy.tool_result)
    keeps_full_text = policy.tool_result.spill and result.content != text
    return TruncatedOutput(result.content, result.original_chars, text if keeps_full_text else None)
