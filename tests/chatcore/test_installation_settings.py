"""What staff set in the admin for the whole installation counts at once, without a restart."""

import json
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.contrib.invitations.links import create_invitation
from chatcore.models import InstallationSettings, Session
from chatcore.providers.base import ToolCall
from chatcore.tools.registry import ToolOutcome, run_tool
from tests.chatcore.test_tools_search_web import FOUND, answer_searxng, serve
from tests.support.admin_forms import read_form
from tests.support.sample_site import Site, page, sites

__all__ = ["sites"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hide_the_browsers_loop"),
]
LIST = "/admin/chatcore/installationsettings/"


@pytest.fixture
def operator() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def put(operator: Client, **values: object) -> Any:
    """Open the page, change some fields and store them."""
    fields = read_form(operator.get(LIST).content.decode(), "installationsettings_form")
    return operator.post(LIST, fields | values)


def test_people_come_by_invitation(operator: Client) -> None:
    guest = Client()
    _, path = create_invitation(made_by=None)
    assert guest.get(path).status_code == 403
    assert put(operator, sign_up="invitation").status_code == 302
    assert guest.get(path).status_code == 302
    fields = {"username": "carol", "password1": "a longer password than before"}
    assert guest.post("/account/sign-up/", fields).status_code == 302
    assert User.objects.filter(username="carol").exists()
    assert put(operator, sign_up="").status_code == 302
    assert Client().get(path).status_code == 403


def fetch(url: str) -> str:
    call = ToolCall(id="1", name="fetch_url", arguments=json.dumps({"url": url}))
    return run_tool(call, session_id=uuid.uuid4()).content


def test_a_host_of_the_inner_network_is_allowed_and_refused_again(
    operator: Client, sites: Callable[[], Site]
) -> None:
    site = sites()
    site.pages["/"] = page("Herons stand in water.")
    assert "administrator can allow" in fetch(site.url)
    assert put(operator, allowed_hosts=f"wiki.internal\n127.0.0.1:{site.port}").status_code == 302
    assert "Herons stand in water." in fetch(site.url)
    assert put(operator, allowed_hosts="").status_code == 302
    assert "Herons" not in fetch(site.url)


@pytest.mark.parametrize(
    "line", ["http://10.0.0.7", "10.0.0.7/wiki", "me@wiki", "wiki:0", "wiki:x"]
)
def test_a_line_that_is_no_host_is_refused(operator: Client, line: str) -> None:
    response = put(operator, allowed_hosts=f"wiki.internal\n{line}")
    assert response.status_code == 200
    [error] = response.context["adminform"].errors["allowed_hosts"]
    assert line in error
    assert InstallationSettings.objects.get().allowed_hosts == ""


def test_the_policy_counts_where_nothing_else_names_one(
    operator: Client, api: APIClient, session: Session
) -> None:
    def read_policy() -> str:
        name: str = api.get(f"/api/v1/sessions/{session.pk}/context").json()["policy"]
        return name

    assert read_policy() == "oneclaw"
    assert put(operator, policy="chatcore").status_code == 302
    assert read_policy() == "chatcore"
    Session.objects.update(policy="oneclaw")
    assert read_policy() == "oneclaw"


def search() -> ToolOutcome:
    call = ToolCall(id="1", name="search_web", arguments=json.dumps({"query": "grey herons"}))
    return run_tool(call, session_id=uuid.uuid4())


def test_chats_search_the_web_by_the_service_that_is_stored(operator: Client) -> None:
    assert search().is_error
    with serve(answer_searxng) as service:
        assert put(operator, web_search=f"{service.url}/below").status_code == 302
        assert search() == ToolOutcome(content=FOUND)
        assert put(operator).status_code == 302  # an empty field keeps it
        assert search() == ToolOutcome(content=FOUND)
        shown = operator.get(LIST).content.decode()
        assert service.url not in shown
        assert "A service is stored." in shown
    assert put(operator, clear_web_search="on").status_code == 302
    assert "No search service" in search().content


def test_what_is_no_service_is_refused_in_words(operator: Client) -> None:
    response = put(operator, web_search="bing")
    assert "address of a SearXNG" in response.context["adminform"].errors["web_search"][0]


def test_a_variable_wins_and_is_shown(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    assert put(operator, allowed_hosts="10.0.0.7:8345").status_code == 302
    monkeypatch.setitem(settings.CHATCORE, "FETCH_ALLOW_HOSTS", ["wiki.internal"])
    text = operator.get(LIST).content.decode()
    assert "Set by CHATCORE_FETCH_ALLOW_HOSTS." in text
    assert "wiki.internal" in text
    put(operator, allowed_hosts="other.internal")
    assert InstallationSettings.objects.get().allowed_hosts == "10.0.0.7:8345"
