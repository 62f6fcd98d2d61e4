"""Connect providers: enter a key, test it with one tiny call, choose among the models it lists.

No page shows a stored key.
"""

from urllib.parse import urlsplit

from django.contrib.auth.decorators import login_required, permission_required
from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRedirect, HttpResponseClientRefresh

from chatcore.accounts import audit
from chatcore.models import SetupEntry
from chatcore.providers import model_lists
from chatcore.setup.connection_test import call_provider
from chatcore.setup.documents import PERSON, apply_document
from chatcore.setup.sections import SetupRefused
from chatcore.web.forms import KeyOfAnyProviderForm, ProviderKeyForm, ServerAddressForm
from models_registry import provider_lists
from models_registry.audit import record_connection
from models_registry.models import AiModel, Provider
from models_registry.provider_form import CONNECT_PERMISSION

PERMISSION = CONNECT_PERMISSION
ADD_PERMISSIONS = (PERMISSION, "models_registry.add_provider", "models_registry.add_aimodel")
LOOPBACK_HOSTS = ("127.0.0.1", "localhost", "::1")


def list_providers() -> QuerySet[Provider]:
    """Return the providers, active ones first, with `model_count` and `is_from_file`."""
    active_models = Count("models", filter=Q(models__is_active=True))
    entries = SetupEntry.objects.filter(section="providers", name=OuterRef("name"))
    rows = Provider.objects.annotate(model_count=active_models, is_from_file=Exists(entries))
    return rows.order_by("-is_active", "name")


def sort_providers() -> dict[str, list[Provider]]:
    """Return those with a key, or that need none, as `ready`, and the `others`.

    One that somebody has switched on without naming a key needs none.
    """
    sorted_providers: dict[str, list[Provider]] = {"ready": [], "others": []}
    for provider in list_providers():
        needs_no_key = provider.is_active and not provider.api_key_env
        is_ready = provider.has_key() or needs_no_key
        sorted_providers["ready" if is_ready else "others"].append(provider)
    return sorted_providers


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def set_provider_key(request: HttpRequest, pk: int) -> HttpResponse:
    """Store an API key. It activates the provider, unless an operator has switched it off."""
    provider = get_object_or_404(Provider, pk=pk)
    form = ProviderKeyForm(request.POST)
    is_saved = form.is_valid()
    if is_saved:
        try:
            _store_key(request, provider, form.cleaned_data["key"])
        except SetupRefused as error:
            return HttpResponse(str(error), status=409, content_type="text/plain")
    return _render_provider(request, pk, saved=is_saved, best=_find_better_default(provider))


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def connect_by_key(request: HttpRequest) -> HttpResponse:
    """Store a key with the provider that it is of, test it, and show the provider's models."""
    form = KeyOfAnyProviderForm(request.POST)
    if not form.is_valid():
        return render(request, "chatcore/_new_key.html", {"key_form": form})
    provider = form.cleaned_data["provider"]
    try:
        _store_key(request, provider, form.cleaned_data["key"])
    except SetupRefused as error:
        form.add_error("key", str(error))
        return render(request, "chatcore/_new_key.html", {"key_form": form})
    provider = get_object_or_404(list_providers(), pk=provider.pk)
    context = call_provider(provider, user=request.user) | _describe_rights(request)
    context |= {"key_form": KeyOfAnyProviderForm(), "provider": provider, "is_new": True}
    return render(request, "chatcore/_new_key.html", context)


def _store_key(request: HttpRequest, provider: Provider, key: str) -> None:
    """Store a provider's key, which activates it. Raises SetupRefused."""
    with transaction.atomic():
        apply_document({"providers": {provider.name: {"api_key": key}}}, PERSON)
        record_connection(request.user, provider, "Entered a key")
        audit.record("key.changed", target=provider, request=request)


@login_required
@permission_required(PERMISSION, raise_exception=True)
@require_POST
def check_provider(request: HttpRequest, pk: int) -> HttpResponse:
    """Ask one model of the provider for a word, and show whether and how fast it answered."""
    provider = get_object_or_404(Provider, pk=pk)
    context = call_provider(provider, user=request.user) | _describe_rights(request)
    return render(request, "chatcore/_provider_test_result.html", context)


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
    """Connect a server on this machine, with the chosen ones of its models.

    Whoever had no model before goes to a new chat, which can begin now.
    """
    server = next((known for known in model_lists.LOCAL_SERVERS if known.name == name), None)
    if server is None:
        raise Http404
    if not Provider.objects.filter(name=server.name).exists():
        options = {"tells_reading": True} if server.tells_reading else {}
        values = {"base_url": server.base_url, "options": options}
        apply_document({"providers": {server.name: values}}, PERSON)
    provider = Provider.objects.get(name=server.name)
    had_model = AiModel.objects.filter_usable().exists()
    if _add_chosen_models(request, provider) and not had_model:
        return HttpResponseClientRedirect(reverse("new_chat"))
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
    names = request.POST.getlist("model")
    # A local server knows how much a model reads once it is loaded, so one is.
    listed = model_lists.read_list(provider, loaded_name=names[0] if names else "")
    return provider_lists.add_models(provider, names, listed.rows, date=timezone.now().date())


def _find_better_default(provider: Provider) -> AiModel | None:
    """Return a usable model of the provider to offer as the default, if another is the default."""
    default = AiModel.objects.find_default()
    if default is None or default.provider_id == provider.pk:
        return None
    return AiModel.objects.filter_usable().filter(provider=provider).order_by("id").first()


def _describe_rights(request: HttpRequest) -> dict[str, bool]:
    return {"may_add": request.user.has_perms(ADD_PERMISSIONS)}


def _render_provider(request: HttpRequest, pk: int, **context: object) -> HttpResponse:
    provider = get_object_or_404(list_providers(), pk=pk)
    return render(request, "chatcore/_provider.html", {"provider": provider, **context})
