"""The recipe of docs/accounts.md for a proxy that signs people in by a header, word for word."""

import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from django.test.utils import override_settings

from chatcore.contrib.audit.models import AuditEntry

pytestmark = pytest.mark.django_db
RECIPE = re.compile(r"```python\n(from django.contrib.auth.middleware.*?)```", re.DOTALL)


@pytest.fixture(autouse=True)
def site_settings(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The settings module that the recipe describes."""
    page = Path(settings.BASE_DIR) / "docs/accounts.md"
    found = RECIPE.search(page.read_text())
    assert found, "the recipe is gone"
    module: Any = types.ModuleType("site_settings")
    module.MIDDLEWARE = list(settings.MIDDLEWARE)
    module.AUTHENTICATION_BACKENDS = list(settings.AUTHENTICATION_BACKENDS)
    exec(compile(found[1], str(page), "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, "site_settings", module)
    with override_settings(
        MIDDLEWARE=module.MIDDLEWARE, AUTHENTICATION_BACKENDS=module.AUTHENTICATION_BACKENDS
    ):
        yield


def test_who_the_proxy_names_is_signed_in_and_gets_an_account(client: Client) -> None:
    page = client.get("/", headers={"Remote-User": "erin"}, follow=True)
    assert page.redirect_chain[-1][0] == "/new/"
    assert page.status_code == 200
    erin = User.objects.get(username="erin")
    assert not erin.is_staff
    assert not erin.check_password("")
    assert AuditEntry.objects.filter(actor=erin).exists()


def test_who_is_no_longer_named_or_may_not_come_in_is_signed_out(client: Client) -> None:
    named = {"Remote-User": "erin"}
    assert client.get("/settings/", headers=named).status_code == 200
    assert client.get("/settings/").status_code == 302
    assert client.get("/settings/", headers={"Remote-User": "frank"}).status_code == 200
    assert client.session["_auth_user_id"] == str(User.objects.get(username="frank").pk)
    User.objects.filter(username="erin").update(is_active=False)
    assert Client().get("/settings/", headers=named).status_code == 302


def test_a_password_still_signs_in_beside_it(client: Client, user: User) -> None:
    form = {"username": "alice", "password": "alice's password"}
    assert client.post("/login/", form).status_code == 302
    assert client.get("/settings/").status_code == 200
