"""Sign in by a one-time link, and the page of a user's settings."""

from django.conf import settings as project
from django.contrib.auth import login
from django.contrib.auth.decorators import login_required, user_passes_test
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import get_language_info
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from django_htmx.http import HttpResponseClientRefresh
from knox.models import AuthToken

from chatcore.web import providers, sign_in
from chatcore.web.chat import use_local_time
from chatcore.web.chat_list import load_chat_list
from chatcore.web.forms import DefaultModelForm, LanguageForm
from models_registry.models import AiModel

LANGUAGE_COOKIE_SECONDS = 365 * 24 * 3600


@never_cache
@require_GET
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by the link that `serve` printed, which works once."""
    user = sign_in.redeem_token(token)
    if user is None:
        return render(request, "chatcore/sign_in_link_used.html", status=410)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")


@login_required
@require_GET
@use_local_time
def show_settings(request: HttpRequest) -> HttpResponse:
    """Show tokens, default model, appearance and language; to operators also the providers."""
    context = {
        "tokens": AuthToken.objects.filter(user=request.user).order_by("-created"),
        "models": AiModel.objects.list_usable(),
        "default": AiModel.objects.find_default(),
        "chats": load_chat_list(request.user),
        "languages": [get_language_info(code) for code, _name in project.LANGUAGES],
        "chosen_language": request.COOKIES.get(project.LANGUAGE_COOKIE_NAME, ""),
    }
    if request.user.has_perm(providers.PERMISSION):
        context["providers"] = providers.list_providers()
    return render(request, "chatcore/settings.html", context)


@require_POST
def set_language(request: HttpRequest) -> HttpResponse:
    """Set the language of the pages in this browser.

    Without a usable language the cookie goes, and the pages follow the browser's own preference.
    """
    response = HttpResponseClientRefresh()  # all texts change, so htmx reloads the page
    form = LanguageForm(request.POST)
    language = form.cleaned_data["language"] if form.is_valid() else ""
    if language:
        response.set_cookie(
            project.LANGUAGE_COOKIE_NAME,
            language,
            max_age=LANGUAGE_COOKIE_SECONDS,
            samesite="Lax",
            httponly=True,
        )
    else:
        response.delete_cookie(project.LANGUAGE_COOKIE_NAME)
    return response


@login_required
@require_POST
def create_token(request: HttpRequest) -> HttpResponse:
    """Create an API token and show it, this once."""
    token, secret = AuthToken.objects.create(user=request.user)
    return render(request, "chatcore/_new_api_token.html", {"token": token, "secret": secret})


@login_required
@require_POST
def delete_token(request: HttpRequest, digest: str) -> HttpResponse:
    """Delete an API token; programs that use it are refused from now on."""
    get_object_or_404(AuthToken, user=request.user, pk=digest).delete()
    return HttpResponse()


@user_passes_test(lambda user: user.is_staff)
@require_POST
def set_default_model(request: HttpRequest) -> HttpResponse:
    """Set the model of new chats. It applies to all users, so only staff may change it."""
    form = DefaultModelForm(request.POST)
    if not form.is_valid():
        raise Http404
    form.cleaned_data["model"].make_default()
    return render(request, "chatcore/_saved_notice.html")
