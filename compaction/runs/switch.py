"""What the change of a session's language model would do to its context."""

from functools import partial
from uuid import UUID

from compaction.models import CompactionRun
from compaction.runs import execution
from compaction.sizing import request_size
from compaction.sizing.session_context import load_session_context
from compaction.summaries.summarizer import simulate_summary


def count_messages_to_summarize(session_id: UUID, *, provider: str, model: str) -> int:
    """Return how many messages would be summarized before the next request to a language model.

    It is 0 where the context fits, where nothing runs by itself, or where nothing can be
    summarized. No model is called and nothing is stored.
    """
    context = load_session_context(session_id, provider=provider, model=model)
    if context is None or context.budget is None or context.automatic_mode == "off":
        return 0
    if context.state.is_stopped or context.state.is_waiting:
        return 0
    if not context.budget.is_over(request_size.measure_next_request(context).tokens):
        return 0
    run = CompactionRun(
        session_id=session_id,
        trigger=CompactionRun.Trigger.ON_MODEL_CHANGE,
        policy=context.policy_name,
        boundary_before=context.facts.boundary_seq,
    )
    simulate = partial(simulate_summary, policy=context.policy)
    transcript = execution.load_transcript(context)
    return execution.propose_outcome(run, context, transcript, simulate).messages_compacted
