"""Tell a model that calls tools in a loop how far it is (docs/origins.md#wolffish)."""

from chatcore.providers.base import Request
from compaction.requests.editing import append_system_text
from compaction.sessions.facts import count_tool_rounds
from compaction.sizing.session_context import SessionContext

HINT_TEMPLATE = (
    "<runtime>\n"
    "Tool rounds in this turn so far: {rounds}\n"
    "Tools called in this turn so far: {calls}\n"
    "When a task asks for one call for each item of a set (every one of N mails, every one of "
    "N pages), make that call for EVERY item before you give a final answer. Make 10 to 15 calls "
    "in one response, and go on with the rest in the next. What a search or a list tells of an "
    "item is no substitute for the call for that item: "
    '"all of them" means all, not a part of them.\n'
    "</runtime>"
)


def add_runtime_hint(context: SessionContext, request: Request) -> Request:
    """Return the request with the hint at the end of its system text.

    It stands in every prompt of a loop, the first one too: there the model decides how many items
    it works on. The request is unchanged if the policy wants no hint, or if there are no tools.
    """
    if not context.policy.flow.runtime_hint or not context.facts.tool_chars:
        return request
    rounds, calls = count_tool_rounds(context.facts)
    return append_system_text(request, HINT_TEMPLATE.format(rounds=rounds, calls=calls))
