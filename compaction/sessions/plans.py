"""Keep the plan of a tool: the newest call that replaces a whole list, word for word.

The list stands in the arguments of a call, which a summary replaces.
"""

import re
from collections.abc import Collection, Mapping
from uuid import UUID

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from chatcore.base.token_estimate import CHARS_PER_TOKEN_ESTIMATE
from chatcore.models import Message
from compaction.sessions.session_context import SessionContext
from compaction.sessions.session_memory import SessionMemory
from textkit.credentials import remove_credentials

HEADING = "The newest list of the tool {tool} (message {seq}), word for word:"
UNKNOWN_WINDOW_CHARS = 8_000
NO_ARGUMENTS = ("", "{}", "null")
# What programs write before the name of a tool: `mcp__x__`, `functions.`, `x/`, `x:`.
_SERVER_MARK = re.compile(r"__|[./:]")
MAX_CALLERS = 50  # messages that are looked at: most name the tool because they call it


class Plans(SessionMemory):
    """The newest plan, which needs no table: it is read from the messages."""

    def render_text(
        self,
        context: SessionContext,
        *,
        boundary_seq: int | None,
        shortened_seqs: Collection[int],
        proposal: object = None,
    ) -> str:
        return render_plan(context, boundary_seq or context.facts.live.boundary_seq)

    def estimate_growth(self, context: SessionContext, last_seq: int) -> int:
        present_text = render_plan(context, context.facts.live.boundary_seq)
        return max(0, len(render_plan(context, last_seq + 1)) - len(present_text))


def render_plan(context: SessionContext, boundary_seq: int | None) -> str:
    """Return the newest plan before the boundary; empty if there is none.

    One that is longer than the room of a summary is left out: half of a list is taken for all.
    """
    names = context.policy.protect.plans
    if not boundary_seq or not names:
        return ""
    max_chars = UNKNOWN_WINDOW_CHARS
    if context.budget:
        max_chars = context.budget.summary_tokens * CHARS_PER_TOKEN_ESTIMATE
    text = _find_plan(context.facts.session_id, boundary_seq, names)
    return text if len(text) <= max_chars else ""


def _find_plan(session_id: UUID, boundary_seq: int, names: tuple[str, ...]) -> str:
    names_filter = Q()
    for name in names:
        names_filter |= Q(calls_text__icontains=f'{name}"')
    messages = Message.objects.filter(
        session=session_id, role=Message.Role.ASSISTANT, branch=None, seq__lt=boundary_seq
    )
    callers = messages.annotate(calls_text=Cast("tool_calls", TextField())).filter(names_filter)
    rows = callers.order_by("-seq").values_list("seq", "tool_calls")[:MAX_CALLERS]
    known_names = {name.casefold() for name in names}
    for seq, calls in rows:
        for call in reversed(calls):
            if _is_plan(call, known_names):
                heading = HEADING.format(tool=call["name"], seq=seq)
                return f"{heading}\n{remove_credentials(call['arguments'])}"
    return ""


def _is_plan(call: Mapping[str, str], names: Collection[str]) -> bool:
    """Return whether a call replaces a list. One without arguments reads it."""
    name = call["name"].casefold()
    is_known = name in names or _SERVER_MARK.split(name)[-1] in names
    return is_known and call["arguments"].strip() not in NO_ARGUMENTS
