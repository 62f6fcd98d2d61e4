"""Sign in by a password or a one-time link, and the page of a user's settings."""

import base64
from urllib.parse import urlsplit

from allauth.account.internal.flows.login import perform_login, perform_password_login
from allauth.account.models import EmailAddress, Login
from allauth.mfa.adapter import get_adapter as get_mfa_adapter
from django.conf import settings as project
from django.contrib.auth import get_user_model, login
from django.contrib.auth.decorators import login_required, user_passes_test
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import get_language_info, gettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django_htmx.http import HttpResponseClientRefresh

from chatcore.accounts import audit, devices, tokens
from chatcore.accounts.rights import find_default_model, select_models
from chatcore.base.rest.auth import ALL
from chatcore.extension import build_page_parts
from chatcore.models import UserPreferences
from chatcore.web import mcp_servers, providers, sign_in
from chatcore.web.chat_list import load_sidebar
from chatcore.web.forms import (
    DefaultModelForm,
    KeyOfAnyProviderForm,
    LanguageForm,
    ServerAddressForm,
    SwitchForm,
    TokenForm,
)
from chatcore.web.own_chat import use_local_time

LANGUAGE_COOKIE_SECONDS = 365 * 24 * 3600
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class SignInView(LoginView):
    """The page that takes a name, or a verified address, and a password."""

    template_name = "chatcore/login.html"
    redirect_authenticated_user = True

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Sign in, or ask for the second factor first if the account has one."""
        user = form.get_user()
        sign_in_steps = Login(
            user=user,
            redirect_url=self.get_success_url(),
            email_verification=_choose_verification(user),
        )
        return perform_password_login(
            self.request, {"username": user.get_username()}, sign_in_steps
        )


def _choose_verification(user: object) -> str:
    """Ask nobody for an address who has none: accounts that an administrator made have none."""
    addresses = EmailAddress.objects.filter(user=user)
    return project.ACCOUNT_EMAIL_VERIFICATION if addresses.exists() else "none"


@never_cache
@require_http_methods(["GET", "POST"])
def sign_in_by_link(request: HttpRequest, token: str) -> HttpResponse:
    """Sign in by the link that `serve` printed, or that another browser made; it works once.

    The printed link is the way back for whoever operates the machine and asks for nothing more.
    One that a browser made asks for the second factor.

    Who only looks at the link, as the preview of a messenger does, does not use it up, and a link
    on a strange page signs nobody in: unless it was opened by hand, it asks first.
    """
    user = sign_in.find_user(token)
    if user is not None and request.method == "GET" and not _is_opened_by_hand(request):
        return render(request, "chatcore/sign_in_confirm.html", {"name": user.get_username()})
    user = sign_in.redeem_token(token)
    if user is None:
        return render(request, "chatcore/sign_in_link_used.html", status=410)
    if sign_in.is_of_browser(token):
        steps = Login(user=user, redirect_url=reverse("home"), email_verification="none")
        return perform_login(request, steps)
    login(request, user, backend="django.contrib.auth.backends.ModelBackend")
    return redirect("home")


def _is_opened_by_hand(request: HttpRequest) -> bool:
    """Return whether a browser says that no page led here: the link was pasted or typed."""
    headers = request.headers
    is_own_act = headers.get("Sec-Fetch-Site") == "none"
    is_prefetch = "Sec-Purpose" in headers or "Purpose" in headers
    return is_own_act and headers.get("Sec-Fetch-Mode") == "navigate" and not is_prefetch


@login_required
@require_GET
@use_local_time
def show_settings(request: HttpRequest) -> HttpResponse:
    """Show tokens, tool servers, model, appearance and language; to operators the providers."""
    context: dict[str, object] = {
        "tokens": tokens.list_tokens(request.user),
        "devices": devices.list_devices(request),
        "tool_servers": mcp_servers.list_servers(request),
        "server_form": mcp_servers.build_new_form(request),
        "models": select_models(request.user.pk).list_usable(),
        "default": find_default_model(request.user.pk),
        "default_of_all": select_models(request.user.pk).find_default(),
        "preferences": UserPreferences.objects.filter(pk=request.user.pk).first(),
        "chats": load_sidebar(request.user),
        "parts": build_page_parts("settings", request),
        "languages": [get_language_info(code) for code, _name in project.LANGUAGES],
        "chosen_language": request.COOKIES.get(project.LANGUAGE_COOKIE_NAME, ""),
    }
    if request.user.has_perm(providers.PERMISSION):
        context["providers"] = providers.sort_providers()
        context["may_add_providers"] = request.user.has_perms(providers.ADD_PERMISSIONS)
        context["address_form"] = ServerAddressForm()
        context["key_form"] = KeyOfAnyProviderForm()
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
            path=project.LANGUAGE_COOKIE_PATH,
            samesite="Lax",
            secure=project.LANGUAGE_COOKIE_SECURE,
            httponly=True,
        )
    else:
        response.delete_cookie(project.LANGUAGE_COOKIE_NAME, path=project.LANGUAGE_COOKIE_PATH)
    return response


@login_required
@require_POST
def create_token(request: HttpRequest) -> HttpResponse:
    """Create an API token and show it, this once."""
    form = TokenForm(request.POST)
    if not form.is_valid():
        raise Http404  # the page has no other choices
    name, scope = form.cleaned_data["name"], form.cleaned_data["scope"] or ALL
    expiry = tokens.get_default_expiry()
    try:
        token, secret = tokens.create_token(
            request.user,
            name=name,
            expiry=expiry,
            scope=scope,
            keeps_conversations=form.cleaned_data["keeps_conversations"],
        )
    except tokens.TooManyTokens:
        text = gettext("There are as many tokens as there may be. Revoke some first.")
        return HttpResponse(text, status=409, content_type="text/plain; charset=utf-8")
    return render(request, "chatcore/_new_api_token.html", {"token": token, "secret": secret})


@login_required
@require_POST
def keep_token_conversations(request: HttpRequest, digest: str) -> HttpResponse:
    """Say whether the conversations of programs that use a token are stored from now on."""
    form = SwitchForm(request.POST)
    is_kept = form.is_valid() and form.cleaned_data["on"]
    if not tokens.keep_conversations(request.user, is_kept, pk=digest):
        raise Http404
    return HttpResponse()


@login_required
@require_POST
def delete_token(request: HttpRequest, digest: str) -> HttpResponse:
    """Delete an API token; programs that use it are refused from now on."""
    if not tokens.revoke_tokens(request.user, pk=digest):
        raise Http404
    return HttpResponse()


@login_required
@require_POST
def end_device(request: HttpRequest, pk: int) -> HttpResponse:
    """Sign another browser of this person out."""
    if not devices.end_devices(request, pk=pk):
        raise Http404
    return render(request, "chatcore/_devices.html", {"devices": devices.list_devices(request)})


@login_required
@require_POST
def end_other_devices(request: HttpRequest) -> HttpResponse:
    """Sign all other browsers of this person out."""
    devices.end_devices(request)
    return render(request, "chatcore/_devices.html", {"devices": devices.list_devices(request)})


@login_required
@require_POST
def create_sign_in_link(request: HttpRequest) -> HttpResponse:
    """Show a link that signs this person in on another device, this once."""
    user = get_user_model()._default_manager.get_by_natural_key(request.user.get_username())
    path = sign_in.build_link_path(user, device=devices.note_device(request))
    link = f"{project.PUBLIC_URL}{path}" if project.PUBLIC_URL else request.build_absolute_uri(path)
    audit.record("sign_in.link_made", target=user, request=request)
    context = {
        "link": link,
        "picture": _draw_link(link),
        "is_local": urlsplit(link).hostname in LOCAL_NAMES,
    }
    return render(request, "chatcore/_device_link.html", context)


def _draw_link(link: str) -> str:
    """Return a picture of a link for a phone, as data, which the content security policy allows."""
    svg = get_mfa_adapter().build_totp_svg(link)
    return f"data:image/svg+xml;base64,{base64.b64encode(svg.encode()).decode()}"


@user_passes_test(lambda user: user.has_perm("models_registry.change_aimodel"))
@require_POST
def set_default_model(request: HttpRequest) -> HttpResponse:
    """Set the model of new chats. It is everybody's, so it takes the right to change models."""
    form = DefaultModelForm(request.POST)
    if not form.is_valid():
        raise Http404
    form.cleaned_data["model"].make_default()
    return render(request, "chatcore/_saved_notice.html")


@login_required
@require_POST
def set_own_model(request: HttpRequest) -> HttpResponse:
    """Set the model of the user's own new chats; no model: that of the installation."""
    name = request.POST.get("model", "")
    model = select_models(request.user.pk).find_by_name(name) if name else None
    if name and model is None:
        raise Http404
    if request.user.pk is not None:
        UserPreferences.keep(request.user.pk, default_model=model)
    return render(request, "chatcore/_saved_notice.html")
