"""The page that connects a program: its block, a token for it, and whether it has come."""

import re
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST
from knox.settings import CONSTANTS

from chatcore.accounts.rights import select_models
from chatcore.accounts.tokens import TooManyTokens, list_tokens
from chatcore.contrib.compat.connect.filling import build_connection, make_token
from chatcore.contrib.compat.connect.programs import PLACEHOLDER, PROGRAMS
from chatcore.web.chat_list import load_sidebar

FIRST_PROGRAM = "codex"
TOKEN = re.compile(r"\w{1,200}", re.ASCII)


class ProgramForm(forms.Form):
    """Which program with which model."""

    program = forms.ChoiceField(choices=[(key, key) for key in PROGRAMS], required=False)
    model = forms.CharField(max_length=300, required=False)


@login_required
@require_GET
@never_cache
def show_programs(request: HttpRequest) -> HttpResponse:
    """Show the programs and the block of one of them."""
    context = _build_context(request, request.GET)
    context["chats"] = load_sidebar(request.user)
    return render(request, "compat/programs.html", context)


@login_required
@require_POST
@never_cache
def show_block(request: HttpRequest) -> HttpResponse:
    """Show the block of a program; with `make` in the form, with a new token in it."""
    context = _build_context(request, request.POST)
    return render(request, "compat/_program.html", context)


@login_required
@require_GET
@never_cache
def show_connection(request: HttpRequest, key: str) -> HttpResponse:
    """Say when a token was last used."""
    token = list_tokens(request.user).filter(token_key=key).first()
    if token is None:
        raise Http404
    return render(request, "compat/_connected.html", {"token": token})


def _build_context(request: Any, data: Any) -> dict[str, object]:
    """Return what the page shows. A wrong choice is the first one."""
    form = ProgramForm(data)
    form.is_valid()
    program = PROGRAMS[form.cleaned_data.get("program") or FIRST_PROGRAM]
    usable = select_models(request.user.pk)
    models = list(usable.list_usable())
    chosen = form.cleaned_data.get("model")
    model = next((each for each in models if str(each) == chosen), None) or usable.find_default()
    token = data.get(f"token-{program.key}", "")  # that the page has just shown
    problem = ""
    if not TOKEN.fullmatch(token):
        token = ""
    if "make" in data and model:
        try:
            token = make_token(request.user, program)
        except TooManyTokens:
            problem = _("There are as many tokens as there may be. Revoke some first.")
    address = request.build_absolute_uri(reverse("home"))
    connection = build_connection(
        request.user, address=address, token=token or PLACEHOLDER, model=model
    )
    rows = list_tokens(request.user)
    if token:
        rows = rows.filter(token_key=token[: CONSTANTS.TOKEN_KEY_LENGTH])
    else:
        rows = rows.filter(token_name__name=program.title, token_name__used_at__isnull=False)
    return {
        "programs": PROGRAMS.values(),
        "program": program,
        "models": models,
        "model": model,
        "settings_text": program.build_block(connection) if connection else "",
        "start_command": program.build_start(connection) if connection else "",
        "secret": token,
        "problem": problem,
        "token": rows.first(),
    }
