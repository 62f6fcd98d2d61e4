"""What the model sees of a chat: messages in a shorter form, and what another would see."""

from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from chatcore.context import live_messages
from chatcore.context.compactor import get_compactor
from chatcore.context.live_messages import LiveMessage
from chatcore.rights.models import select_models
from chatcore.templatetags.chat import tokens
from chatcore.web.chat import get_own_chat


@login_required
@require_GET
def show_shortened_messages(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Show each shortened message in the form in which it is sent."""
    session = get_own_chat(request, pk)
    kinds = dict(session.context_edits.filter(until_version=None).values_list("message_id", "kind"))
    messages: list[LiveMessage] = []
    if kinds:  # else the live messages, perhaps thousands, need not be loaded
        revision = live_messages.load_active_revision(session)
        messages = live_messages.load_live_messages(session, revision)
    forms = [
        {"form": message, "kind": kinds.get(message.pk, "")}
        for message in messages
        if message.original_text is not None
    ]
    return render(request, "chatcore/_shortened_messages.html", {"forms": forms})


@login_required
@require_GET
def preview_switch(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Say what happens first if the model `to` answers next; nothing where all fits."""
    session = get_own_chat(request, pk)
    provider_name, _slash, name = request.GET.get("to", "").partition("/")
    models = select_models(request.user.pk).filter_usable()
    model = get_object_or_404(models, provider__name=provider_name, name=name)
    count = get_compactor().preview_switch(session, provider=provider_name, model=name)
    if not count:
        return HttpResponse(status=204)
    sentence = ngettext(
        "%(model)s holds %(window)s tokens: %(count)s message will be summarized first.",
        "%(model)s holds %(window)s tokens: %(count)s messages will be summarized first.",
        count,
    )
    values = {"model": name, "window": tokens(model.request_limit), "count": count}
    return HttpResponse(sentence % values, content_type="text/plain; charset=utf-8")
