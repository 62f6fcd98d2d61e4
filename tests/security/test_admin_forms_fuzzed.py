"""No form of the admin answers hostile values with an error of the server."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model
from django.test import Client, RequestFactory
from django.urls import reverse

from chatcore.contrib.webhooks.models import Webhook
from chatcore.models import Session
from compaction.models import CompactionPolicy, SessionState
from models_registry.models import AiModel, Provider
from tests.support.admin_forms import read_form

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
VALUES = [
    "\x00",
    r'{"a": "\ud800 \u0000"}',
    '{"a": NaN}',
    "[1]",
    "[" * 3_000,
    "9" * 400,
    "x" * 70_000,
]


@pytest.fixture
def operator(user: User) -> tuple[Client, User]:
    root = User.objects.create_superuser("root")
    client = Client(raise_request_exception=False)
    client.force_login(root)
    return client, root


@pytest.fixture
def rows(user: User, session: Session) -> dict[type[Model], Model]:
    """A row for each form that changes one; other forms add rows."""
    assert session.model
    rows: list[Model] = [
        session,
        session.model,
        session.model.provider,
        user,
        Webhook.objects.create(owner=user, url="https://example.org/hook", secret="x"),
        CompactionPolicy.objects.create(name="ours", base="oneclaw"),
        SessionState.objects.create(session=session),
    ]
    return {type(row): row for row in rows}


def list_addresses(root: User, rows: dict[type[Model], Model]) -> list[tuple[str, str]]:
    """Return the address of each form, and the id of the form on its page."""
    request = RequestFactory().get("/admin/")
    request.user = root
    addresses = []
    for model, page in admin.site._registry.items():
        name = f"{model._meta.app_label}_{model._meta.model_name}"
        form_id = f"{model._meta.model_name}_form"
        if page.has_add_permission(request):
            addresses.append((reverse(f"admin:{name}_add"), form_id))
        if model in rows and page.has_change_permission(request):
            address = reverse(f"admin:{name}_change", args=[rows[model].pk])
            addresses.append((address, form_id))
    return addresses


def test_hostile_values_are_refused_or_stored(
    operator: tuple[Client, User], rows: dict[type[Model], Model]
) -> None:
    client, root = operator
    addresses = list_addresses(root, rows)
    assert len(addresses) > 12
    failures: list[Any] = []
    for address, form_id in addresses:
        fields = read_form(client.get(address).content.decode(), form_id)
        names = [name for name in fields if not name.startswith("initial-")]
        for value in VALUES:
            answer = client.post(address, dict.fromkeys(names, value))
            if answer.status_code >= 500:
                failures.append((address, value[:20]))
    assert failures == []
    assert Provider.objects.exists()
    assert AiModel.objects.exists()
