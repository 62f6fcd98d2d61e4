"""Connect providers: enter a key, test it with one tiny call, choose among the models it lists.

No page shows a stored key.
"""

import asyncio
import time
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required, permission_required
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRefresh

from chatcore.accounts import audit
from chatcore.context.compactor import get_compactor
from chatcore.net.strangers import wait_for_stranger
from chatcore.providers import model_lists
from chatcore.providers import registry as provider_registry
from chatcore.providers.base import ChatMessage, Connection, Request
from chatcore.providers.connections import build_connection
from chatcore.providers.errors import ProviderError
from chatcore.web.forms import ProviderKeyForm, ServerAddressForm
from models_registry import catalog, provider_lists
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION

PERMISSION = CONNECT_PERMISSION
ADD_PERMISSIONS = (PERMISSION, "models_registry.add_provider", "models_registry.add_aimodel")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")
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
    return _render_provider(request, pk, saved=is_saved, best=_find_better_default(provider))


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def check_provider(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask one model of the provider for a word, and show whether and how fast it answered."""
    provider = get_object_or_404(Provider, pk=pk)
    context = call_provider(provider, user=request.user) | _describe_rights(request)
    return render(request, "chatcore/_provider_test_result.html", context)


def call_provider(provider: Provider, *, user: Any) -> dict[str, Any]:
    """Ask the provider for its list of models, and one of its models for a word.

    Returns the `model` and its `seconds`, or the `problem`; and what else its list has, as
    `offered`. The admin's button calls this too. Windows that refusals have shown are forgotten:
    longer requests are tried again.
    """
    record_connection(user, provider, "Tested the connection")
    listed = model_lists.read_list(provider)
    offered = provider_lists.list_new_models(provider, listed.rows)
    result: dict[str, Any] = {"provider": provider, "offered": offered}
    model = provider.models.filter(is_active=True).order_by("-is_default", "id").first()
    if model is None:
        return result | {"problem": listed.problem or _("It has no active language model.")}
    result |= {"model": model} | _time_test_call(model)
    if "problem" not in result:
        today = timezone.now().date()
        result["learned_count"] = provider_lists.fill_unknown_values(
            provider, listed.rows, date=today
        )
        for learned_model in provider.models.all():
            get_compactor().forget_window(learned_model)  # longer requests are tried again
    return result


@login_required
@permission_required(ADD_PERMISSIONS, raise_exception=True)
@require_POST
def add_models(request: HttpRequest, pk: int) -> HttpResponse:
    """Add the chosen models of a provider's list, and offer one of them as the default."""
    provider = get_object_or_404(Provider, pk=pk)
    added_count = len(_add_chosen_models(request, provider))
    better_default = _find_better_default(provider)
    return _render_provider(request, pk, added_count=added_count, best=better_default)


@login_required
@permission_required(ADD_PERMISSIONS, raise_exception=True)
@require_GET
def find_servers(request: HttpRequest) -> HttpResponse:
    """Show the servers of language models on this machine that nobody has connected yet."""
    addresses = Provider.objects.filter(is_active=True).values_list("base_url", flat=True)
    connected_ports = {
        urlsplit(address).port
        for address in addresses
        if urlsplit(address).hostname in LOOPBACK_HOSTS
    }
    found = [
        (server, provider_lists.list_new_models(None, rows))
        for server, rows in model_lists.find_local_servers().items()
        if server.port not in connected_ports
    ]
    return render(request, "chatcore/_found_servers.html", {"found": found})


@login_required
@permission_required(ADD_PERMISSIONS, raise_exception=True)
@require_POST
def connect_local_server(request: HttpRequest, name: str) -> HttpResponse:
    """Connect a server on this machine, with the chosen ones of its models."""
    server = next((known for known in model_lists.LOCAL_SERVERS if known.name == name), None)
    if server is None:
        raise Http404
    provider, _is_new = Provider.objects.get_or_create(
        name=server.name,
        defaults={"protocol": Provider.Protocol.OPENAI, "base_url": server.base_url},
    )
    _add_chosen_models(request, provider)
    return HttpResponseClientRefresh()


@login_required
@permission_required(ADD_PERMISSIONS, raise_exception=True)
@require_POST
def connect_server(request: HttpRequest) -> HttpResponse:
    """Connect a server by its address, and show which models it lists."""
    form = ServerAddressForm(request.POST)
    if not form.is_valid():
        return render(request, "chatcore/_new_provider.html", {"address_form": form})
    provider = form.save()
    audit.record("key.changed", target=provider, request=request)
    context = call_provider(provider, user=request.user)
    context["provider"] = get_object_or_404(list_providers(), pk=provider.pk)
    context |= _describe_rights(request) | {"address_form": ServerAddressForm(), "is_new": True}
    return render(request, "chatcore/_new_provider.html", context)


def _add_chosen_models(request: HttpRequest, provider: Provider) -> list[AiModel]:
    record_connection(request.user, provider, "Added models of its list")
    listed = model_lists.read_list(provider)
    return provider_lists.add_models(
        provider, request.POST.getlist("model"), listed.rows, date=timezone.now().date()
    )


def _find_better_default(provider: Provider) -> AiModel | None:
    """Return a usable model of the provider to offer as the default, if another is the default."""
    default = AiModel.objects.find_default()
    if default is None or default.provider_id == provider.pk:
        return None
    return AiModel.objects.filter_usable().filter(provider=provider).order_by("id").first()


def _describe_rights(request: HttpRequest) -> dict[str, bool]:
    return {"may_add": request.user.has_perms(ADD_PERMISSIONS)}


def _render_provider(request: HttpRequest, pk: int, **context: Any) -> HttpResponse:
    provider = get_object_or_404(list_providers(), pk=pk)
    return render(request, "chatcore/_provider.html", {"provider": provider, **context})


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
