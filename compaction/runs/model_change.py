"""What the change of a session's language model would do to its context."""

from functools import partial
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from chatcore.accounts.rights import select_models
from chatcore.web.own_chat import get_own_chat
from compaction.models import CompactionRun
from compaction.runs import execution
from compaction.sessions import request_size
from compaction.sessions.session_context import load_session_context
from compaction.summaries.summarizer import simulate_summary
from models_registry.models import AiModel


@login_required
@require_GET
def preview_switch(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say what happens first if the model `to` answers next; nothing where all fits."""
    session = get_own_chat(request, pk)
    provider_name, _slash, name = request.GET.get("to", "").partition("/")
    models = select_models(request.user.pk).filter_usable()
    model = get_object_or_404(models, provider__name=provider_name, name=name)
    count = _count_messages_to_summarize(session.pk, model)
    if not count:
        return HttpResponse(status=204)
    sentence = ngettext(
        "%(model)s can read less at once: %(count)s older message becomes a summary first.",
        "%(model)s can read less at once: %(count)s older messages become a summary first.",
        count,
    )
    values = {"model": name, "count": count}
    return HttpResponse(sentence % values, content_type="text/plain; charset=utf-8")


def _count_messages_to_summarize(session_id: UUID, model: AiModel) -> int:
    """Return how many messages would be summarized before the next request to a language model.

    It is 0 where the context fits, where nothing runs by itself, or where nothing can be
    summarized. No model is called and nothing is stored.
    """
    context = load_session_context(session_id, provider=model.provider.name, model=model.name)
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
        boundary_before=context.facts.live.boundary_seq,
    )
    simulate = partial(simulate_summary, policy=context.policy)
    transcript = execution.load_transcript(context)
    return execution.propose_outcome(run, context, transcript, simulate).messages_compacted
