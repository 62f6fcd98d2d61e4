"""What people and machines do all the time, as the product does it: over REST, pages and jobs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from asgiref.sync import async_to_sync
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.context.builder import build_request
from chatcore.contrib.webhooks import deliveries
from chatcore.models import Session
from chatcore.search.query import search_messages
from chatcore.signals import response_completed
from chatcore.turns import lifecycle
from compaction.runs import engine
from measure.rehearsal.texts import build_phrase, build_question

QUESTION = build_question()
PHRASE = build_phrase()


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Who acts: somebody with many chats, one chat of usual length, and a very long one."""

    owner: User
    session: Session
    long: Session
    operator: User


def list_hot_acts(stage: Stage) -> Mapping[str, Callable[[], object]]:
    """Return each act by what it is."""
    get = _make_getter(stage.owner)
    middle = stage.long.last_seq // 2
    today = timezone.now().date()
    return {
        "the page of chats": lambda: get("/"),
        "a chat's page": lambda: get(f"/c/{stage.session.pk}/"),
        "list of sessions, first page": lambda: get("/api/v1/sessions"),
        "messages, newest of 100,000": lambda: get(f"/api/v1/sessions/{stage.long.pk}/messages"),
        "messages, from the middle of 100,000": lambda: get(
            f"/c/{stage.long.pk}/messages/?before={middle}"
        ),
        "next request, 100,000 stored": lambda: build_request(stage.long),
        "check after a response": lambda: response_completed.send_robust(
            Session, session_id=stage.long.pk, turn_id=None, message_id=None, model=""
        ),
        "context of a session": lambda: get(f"/api/v1/sessions/{stage.session.pk}/context"),
        "runs of a session": lambda: get(f"/api/v1/sessions/{stage.session.pk}/compactions"),
        "a question in one chat": lambda: search_messages(stage.session.pk, QUESTION),
        "a question in all chats of a person": lambda: search_messages(stage.owner, QUESTION),
        "quoted words in all chats of a person": lambda: search_messages(stage.owner, PHRASE),
        "usage of a month": lambda: get(f"/api/v1/usage?from={today - timedelta(days=30)}"),
        "turns to recover": lifecycle.recover_dead_turns,
        "runs to send again": engine.resend_lost_runs,
        "deliveries of webhooks that are due": lambda: async_to_sync(
            deliveries.start_due_deliveries
        )(),
    }


def list_admin_acts(stage: Stage) -> Mapping[str, Callable[[], object]]:
    """Return the pages of the admin, each by its address."""
    client = Client()
    client.force_login(stage.operator)
    session = stage.session.pk
    lists = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in apps.get_models()
        if admin.site.is_registered(model)
    ]
    paths = [
        "/admin/",
        *lists,
        "/admin/chatcore/session/?q=report",
        reverse("admin:chatcore_session_change", args=[session]),
        reverse("admin:compaction_session_timeline", args=[session]),
        f"/admin/chatcore/message/?session__id__exact={session}",
    ]
    return {path.replace(str(session), "…"): partial(_get_page, client, path) for path in paths}


def _make_getter(user: User) -> Callable[[str], object]:
    api, pages = APIClient(), Client()
    api.force_authenticate(user)
    pages.force_login(user)

    def get(path: str) -> object:
        return _check((api if path.startswith("/api/") else pages).get(path, follow=True))

    return get


def _get_page(client: Client, path: str) -> object:
    return _check(client.get(path))


def _check(response: Any) -> object:
    assert response.status_code == 200, f"{response.status_code} {response.content[:300]!r}"
    return response
