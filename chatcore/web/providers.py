"""Enter the API keys of providers and test them with one tiny call. No page shows a stored key."""

import asyncio
import time
from dataclasses import replace
from typing import Any

from django.contrib.auth.decorators import login_required, permission_required
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from chatcore.accounts import audit
from chatcore.context.compactor import get_compactor
from chatcore.net.strangers import wait_for_stranger
from chatcore.providers import model_lists
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Connection, Request
from chatcore.providers.connections import build_connection
from chatcore.providers.errors import ProviderError
from chatcore.web.forms import ProviderKeyForm
from models_registry import catalog
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION

PERMISSION = CONNECT_PERMISSION
TEST_SECONDS = 20.0
TEST_TOKENS = 16


def list_providers() -> QuerySet[Provider]:
    """Return the providers, active ones first, with the number of models as `model_count`."""
    active_models = Count("models", filter=Q(models__is_active=True))
    return Provider.objects.annotate(model_count=active_models).order_by("-is_active", "name")


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def set_provider_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Store an API key. It activates the provider, unless an operator has switched it off."""
    provider = get_object_or_404(Provider, pk=pk)
    form = ProviderKeyForm(request.POST)
    is_saved = form.is_valid()
    if is_saved:
        with transaction.atomic():
            provider.api_key = form.cleaned_data["key"]
            provider.save(update_fields=["encrypted_api_key"])
            record_connection(request.user, provider, "Entered a key")
            audit.record("key.changed", target=provider, request=request)
        # Only the catalog knows whether the provider is off for want of a key or by an operator.
        catalog.sync()
    context = {"provider": get_object_or_404(list_providers(), pk=pk), "saved": is_saved}
    return render(request, "chatcore/_provider.html", context)


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def check_provider(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask one model of the provider for a word, and show whether and how fast it answered."""
    provider = get_object_or_404(Provider, pk=pk)
    context = call_provider(provider, user=request.user)
    return render(request, "chatcore/_provider_test_result.html", context)


def call_provider(provider: Provider, *, user: Any) -> dict[str, Any]:
    """Ask one model of the provider for a word, and learn what its list of models says.

    Returns the `model` and its `seconds`, or the `problem`. The admin's button calls this too.
    Windows that refusals have shown are forgotten: longer requests are tried again.
    """
    model = provider.models.filter(is_active=True).order_by("-is_default", "id").first()
    if model is None:
        return {"problem": _("It has no active language model.")}
    record_connection(user, provider, "Tested the connection")
    result: dict[str, Any] = {"model": model} | _time_test_call(model)
    if "problem" not in result:
        result["learned_count"] = model_lists.learn_from_list(provider)
        for learned_model in provider.models.all():
            get_compactor().forget_window(learned_model)  # longer requests are tried again
    return result


def _time_test_call(model: AiModel) -> dict[str, object]:
    start = time.monotonic()
    try:
        # No retries: an operator waits for this answer and can press the button again.
        connection = build_connection(model.provider, max_retries=0)
        timeout_seconds = min(connection.timeout_seconds, TEST_SECONDS)
        connection = replace(connection, timeout_seconds=timeout_seconds)
        wait_for_stranger(_send_test_question(connection, model.name))
    except ProviderError as error:
        return {"problem": error.detail}
    except TimeoutError:
        sentence = _("There was no answer within %(seconds)d seconds.")
        return {"problem": sentence % {"seconds": TEST_SECONDS}}
    return {"seconds": time.monotonic() - start}


async def _send_test_question(connection: Connection, model_name: str) -> None:
    question = ChatMessage(role="user", content="Say OK.")
    provider_request = Request(model=model_name, messages=(question,), max_tokens=TEST_TOKENS)
    async with asyncio.timeout(TEST_SECONDS):
        async for _part in provider_registry.stream(connection, provider_request):
            pass
