"""In a tool loop: tell the model how far it is, and to do all of it. Wolffish, Runtime Batching Instruction."""

from typing import Any

from compaction.backends import registry as backend_registry
from compaction.sizing.session_context import SessionContext

HINT_TEMPLATE = (
    "<runtime>\n"
    "Tool rounds in this turn so far: {rounds}\n"
    "Tools called in this turn so far: {calls}\n"
    "When a task asks for one call for each item of a set (every one of N mails, every one of N pages), make that call for EVERY item "
    "before you give a final answer. Make 10 to 15 calls in one response, and go on with the rest in the next. What a search or a list "
    'tells of an item is no substitute for the call for that item: "all of them" means all, not a part of them.\n'
    "</runtime>"
)


def add_runtime_hint(context: SessionContext, request: Any) -> Any:
    """The request with the hint at the end of its system text, where the policy wants it and tools have answered; else as it is."""
    if not context.policy.flow.runtime_hint:
        return request
    rounds, calls = backend_registry.get_backend().count_tool_rounds(context.facts)
    return (
        backend_registry.get_backend().append_system_text(
            request, HINT_TEMPLATE.format(rounds=rounds, calls=calls)
        )
        if rounds
        else request
    )
