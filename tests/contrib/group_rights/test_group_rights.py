"""Rights of groups: what a group does not name does not exist for its members."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.test import Client
from rest_framework.test import APIClient

from chatcore.accounts.rights import AllowedNames
from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import McpServer, Session, Turn
from chatcore.tools.mcp.catalog import list_available_tools
from models_registry.models import AiModel
from tests.support.mcp_server import ToolServer, running, tool_server
from tests.support.route_matrix import MATRIX, MESSAGE, SESSION
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

__all__ = ["running", "tool_server"]

pytestmark = pytest.mark.django_db(transaction=True)
SECRET, ABSENT = "secret-model", "absent-model"


@pytest.fixture
def rights(user: User, model: AiModel) -> GroupRights:
    """Alice's group may use one model, one policy and one tool; there is a model that it may not.

    Another group of hers says nothing, which neither gives nor takes.
    """
    AiModel.objects.create(provider=model.provider, name=SECRET, supports_tools=True)
    group = Group.objects.create(name="Team")
    user.groups.add(group, Group.objects.create(name="Others"))
    return GroupRights.objects.create(
        group=group,
        limits_models=True,
        model_names=["scripted/test-model"],
        limits_policies=True,
        policy_names=["oneclaw"],
        limits_tools=True,
        tool_names=["calculate", "mcp__files__*"],
    )


def send(api: APIClient, session: Session, question: str = "Hi") -> Any:
    return api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": question})


def test_no_route_tells_a_model_that_is_not_allowed_from_one_that_does_not_exist(
    api: APIClient, rights: GroupRights, session: Session, scripted: ScriptedModel
) -> None:
    message = send(api, session).json()["user_message"]["id"]
    ids = {SESSION: session.pk, MESSAGE: message, "<path:name>": SECRET}
    for route, methods in MATRIX.items():
        for name, value in ids.items():
            route = route.replace(name, str(value))
        path = "/" + re.sub(r"<uuid:[^>]*>|\(\?P[^)]*\)", str(uuid4()), route)
        for method, body in methods.items():
            if method == "GET" and not path.endswith("/events"):
                response = api.get(path, body)
                content = b"".join(response) if response.streaming else response.content
                answer = content.decode(errors="replace")
                assert "does not exist" in answer or SECRET not in answer, path
            if method in ("POST", "PATCH") and isinstance(body, dict):
                refusals = []
                for name in (SECRET, ABSENT):
                    response = getattr(api, method.lower())(path, body | {"model": name})
                    text = re.sub(rf'{name}|"request_id".*', "", response.content.decode())
                    assert response.status_code < 500, path
                    refusals.append((response.status_code, response.status_code > 299 and text))
                assert refusals[0] == refusals[1], path
    asked_models = {request.json.get("model") for request in scripted.requests}
    assert asked_models == {"test-model"}
    assert not Session.all_objects.filter(model__name=SECRET).exists()
    assert not Turn.objects.filter(model__name=SECRET).exists()


def test_the_default_model_is_one_that_is_allowed(
    api: APIClient, rights: GroupRights, model: AiModel
) -> None:
    AiModel.objects.get(name=SECRET).make_default()
    assert api.post("/api/v1/sessions", {}).json()["model"] == str(model)
    assert api.post("/v1/responses", {"input": "Hi"}).json()["model"] == str(model)
    conversation = api.post("/v1/conversations", {}).json()["id"]
    assert Session.objects.get(external_id=conversation).model == model


def test_no_page_shows_a_model_a_policy_or_a_tool_that_is_not_allowed(
    client: Client, user: User, rights: GroupRights, session: Session
) -> None:
    client.force_login(user)
    chat = f"/c/{session.pk}/"
    for path in ("/new/", chat, "/settings/", "/new/settings/", f"{chat}settings/"):
        page = client.get(path)
        assert page.status_code == 200, path
        html = page.content.decode()
        assert SECRET not in html, path
        assert "claudecode" not in html, path
        assert "fetch_url" not in html, path
    assert "oneclaw" in html
    assert 'value="calculate"' in html


def test_only_policies_and_tools_that_are_allowed_can_be_chosen(
    api: APIClient, rights: GroupRights, session: Session
) -> None:
    names = [row["name"] for row in api.get("/api/v1/policies").json()["results"]]
    assert names == ["oneclaw"]
    path = f"/api/v1/sessions/{session.pk}"
    assert api.patch(path, {"policy": "oneclaw", "tools": ["calculate"]}).status_code == 200
    for field, value in (("policy", names[0] + "x"), ("tools", ["fetch_url"])):
        refusal = api.patch(path, {field: value})
        assert refusal.status_code == 400
        assert refusal.json()["errors"][0]["field"].startswith(field)
    for response in (
        api.patch(path, {"policy": "claudecode"}),
        api.post(f"{path}/compact", {"policy": "claudecode"}),
    ):
        assert response.json()["errors"][0]["field"] == "policy"


def test_the_model_is_offered_and_runs_only_tools_that_are_allowed(
    api: APIClient, rights: GroupRights, session: Session, scripted: ScriptedModel
) -> None:
    call = make_tool_call("search_history", {"query": "Hi"})
    scripted.script(Reply(tool_calls=(call,)), Reply(text="Then not."))
    turn = send(api, session).json()
    offered = [tool["function"]["name"] for tool in scripted.requests[0].json["tools"]]
    assert offered == ["calculate"]
    [result] = turn["tool_messages"]
    assert result["content"] == "The user may not use the tool 'search_history'."
    McpServer.objects.create(
        name="other",
        url="http://127.0.0.1/mcp",
        tools=[{"name": "read", "description": "", "parameters": {}}],
    )
    assert (
        api.patch(f"/api/v1/sessions/{session.pk}", {"tools": ["mcp__other__read"]}).status_code
        == 400
    )


@pytest.mark.parametrize("tools", [[], ["calculate"]])
def test_a_built_in_tool_that_is_switched_off_is_not_run(
    api: APIClient, session: Session, scripted: ScriptedModel, tools: list[str]
) -> None:
    api.patch(f"/api/v1/sessions/{session.pk}", {"tools": tools})
    call = make_tool_call("fetch_url", {"url": "https://a.test/"})
    scripted.script(Reply(tool_calls=(call,)), Reply(text="Then not."))
    [result] = send(api, session).json()["tool_messages"]
    assert result["content"] == "The tool 'fetch_url' is not switched on in this session."
    assert result["is_error"]


def test_an_own_server_passes_no_limit_by_the_name_of_a_shared_one(
    api: APIClient, rights: GroupRights, user: User, session: Session, scripted: ScriptedModel
) -> None:
    tools = [{"name": "read", "description": "Mine.", "parameters": {}}]
    values = {"url": "http://127.0.0.1/mcp", "require_approval": "never", "tools": tools}
    own = McpServer.objects.create(owner=user, name="files", **values)
    path = f"/api/v1/sessions/{session.pk}"
    choice = {"tools": ["mcp__files__read"]}
    assert api.patch(path, choice).status_code == 400
    Session.objects.filter(pk=session.pk).update(**choice)  # chosen before the group was limited
    scripted.script(Reply(tool_calls=(make_tool_call("mcp__files__read"),)), Reply(text="No."))
    turn = send(api, session).json()
    assert "tools any more: mcp__files__read" in " ".join(turn["notices"])
    assert "tools" not in scripted.requests[0].json
    assert turn["tool_messages"][0]["content"].startswith("There is no tool called")

    rights.tool_names = ["own__*"]
    rights.save()
    assert api.patch(path, choice).status_code == 200
    assert send(api, session).json()["notices"] == []
    shared = McpServer.objects.create(name="files", **values)
    assert api.patch(path, choice).status_code == 400  # the shared one, which is not allowed
    rights.tool_names = ["mcp__files__*"]
    rights.save()
    assert api.patch(path, choice).status_code == 200
    assert [tool.server for tool in list_available_tools(user)] == [shared]
    own.delete()
    assert [tool.server for tool in list_available_tools(user)] == [shared]


def test_a_server_of_a_request_needs_the_right_to_bring_servers(
    api: APIClient,
    rights: GroupRights,
    scripted: ScriptedModel,
    tool_server: ToolServer,
) -> None:
    server = {
        "type": "mcp",
        "server_label": "files",
        "server_url": tool_server.url,
        "require_approval": "never",
    }
    for store in (True, False):
        body = {"input": "Hi", "tools": [server], "store": store}
        assert api.post("/v1/responses", body).status_code == 200
        assert "tools" not in scripted.requests[-1].json
    rights.tool_names = ["own__files__*"]
    rights.save()
    for store in (True, False):
        body = {"input": "Hi", "tools": [server], "store": store}
        assert api.post("/v1/responses", body).status_code == 200
        names = [tool["function"]["name"] for tool in scripted.requests[-1].json["tools"]]
        assert "mcp__files__read" in names


def test_a_session_says_what_its_owner_lost(
    api: APIClient, rights: GroupRights, session: Session
) -> None:
    session.policy, session.tools = "oneclaw", ["calculate"]
    session.save()
    assert send(api, session).json()["notices"] == []
    rights.policy_names, rights.tool_names = [], []
    rights.save()
    notices = " ".join(send(api, session, "Again").json()["notices"])
    assert "policy oneclaw any more" in notices
    assert "tools any more: calculate" in notices
    session.refresh_from_db()
    assert session.policy == ""

    rights.model_names = []
    rights.save()
    count = session.messages.count()
    refusal = send(api, session, "And again")
    assert refusal.status_code == 403
    assert refusal.json()["type"].endswith("model_not_allowed")
    assert "scripted/test-model" in refusal.json()["detail"]
    assert session.messages.count() == count
    for path, body in (
        ("/v1/responses", {"input": "Hi"}),
        ("/v1/conversations", {}),
    ):
        assert api.post(path, body).status_code in (200, 400), path  # no model at all


def test_a_turn_that_waited_while_its_model_was_taken_away_ends_in_words(
    api: APIClient, rights: GroupRights, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(tool_calls=(make_tool_call("weather"),)))
    body = {"content": "Rain?", "tools": [{"name": "weather"}]}
    path = f"/api/v1/sessions/{session.pk}"
    assert api.post(f"{path}/messages", body).json()["status"] == "waiting"
    rights.model_names = []
    rights.save()
    results = {"results": [{"tool_call_id": "call_1", "content": "Yes"}]}
    answer = api.post(f"{path}/tool_results", results)
    assert answer.json()["type"].endswith("model_not_allowed"), answer.json()
    assert session.messages.filter(role="tool", content="Yes").exists()


def test_what_groups_say_adds_up_and_a_superuser_may_use_everything(
    api: APIClient, rights: GroupRights, user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    def list_models() -> set[str]:
        return {row["name"] for row in api.get("/api/v1/models").json()["results"]}

    assert list_models() == {"test-model"}
    other = Group.objects.get(name="Others")
    GroupRights.objects.create(group=other, limits_models=True, model_names=["scripted/sec*"])
    assert list_models() == {"test-model", SECRET}
    user.groups.clear()
    assert list_models() == {"test-model", SECRET}
    monkeypatch.setitem(settings.CHATCORE, "ALLOW_BY_DEFAULT", False)
    assert list_models() == set()
    User.objects.filter(pk=user.pk).update(is_superuser=True)
    assert list_models() == {"test-model", SECRET}


@pytest.mark.parametrize(
    ("pattern", "name", "matches"),
    [
        ("a/*", "a/b", True),
        ("a/*", "ab/c", False),
        ("*", "a/b", True),
        ("a/b", "a/bc", False),
        ("a/b*", "a/bc", True),
    ],
)
def test_names_match_in_memory_as_in_the_database(
    user: User, rights: GroupRights, pattern: str, name: str, matches: bool
) -> None:
    from chatcore.accounts.rights import select_models
    from models_registry.models import Provider

    rights.model_names = [pattern]
    rights.save()
    provider_name, model_name = name.split("/")
    provider = Provider.objects.create(name=provider_name, protocol="openai")
    AiModel.objects.create(provider=provider, name=model_name)
    assert (name in AllowedNames((frozenset([pattern]),))) == matches
    assert select_models(user.pk).filter(name=model_name).exists() == matches


def test_an_operator_limits_a_group_in_the_admin(
    client: Client, rights: GroupRights, admin_user: User
) -> None:
    client.force_login(admin_user)
    group = Group.objects.create(name="Guests")
    form = {
        "group": group.pk,
        "limits_models": "on",
        "model_names": ["scripted/*"],
        "tool_names": ["calculate"],
    }
    assert client.post("/admin/group_rights/grouprights/add/", form).status_code == 302
    stored = GroupRights.objects.get(group=group)
    assert (stored.limits_models, stored.model_names) == (True, ["scripted/*"])
    assert (stored.limits_tools, stored.tool_names) == (False, ["calculate"])
    wrong = form | {"model_names": ["no/such"], "group": Group.objects.create(name="X").pk}
    assert client.post("/admin/group_rights/grouprights/add/", wrong).status_code == 200
    changed = {"group": group.pk, "limits_models": "on", "model_names": []}
    path = f"/admin/group_rights/grouprights/{stored.pk}/change/"
    assert client.post(path, changed).status_code == 302
    stored.refresh_from_db()
    assert stored.model_names == []


def test_every_room_asks_for_rights_when_it_looks_up_a_model_or_a_policy() -> None:
    """Only the operators' own acts and what operators chose for everyone look past the rights."""
    lookups = re.compile(
        r"AiModel\.objects\.(\w+\(\)\.)*(filter_usable|list_usable|find_by_name|find_default)\("
        r"|\baccepts_policy\(|list_policies\(\)"
    )
    allowed = {
        "chatcore/accounts/rights.py",
        "chatcore/admin/installation_settings.py",
        "chatcore/web/forms.py",
        "chatcore/context/compactor.py",
        "chatcore/contrib/local_model/",
        "chatcore/web/chat_settings.py",
        "chatcore/web/providers.py",
        "chatcore/contrib/terminal/management/commands/chat.py",
        "chatcore/management/commands/list_models.py",
        "chatcore/setup/",
        "chatcore/contrib/group_rights/",
        "chatcore/transfer/context.py",  # it compares texts with those of all policies
    }
    root = Path(settings.BASE_DIR)
    found = {
        path.relative_to(root).as_posix()
        for path in (root / "chatcore").rglob("*.py")
        if lookups.search(path.read_text())
    }
    assert {name for name in found if not name.startswith(tuple(allowed))} == {
        # Its accepts_policy is that of rights.
        "chatcore/api/serializers/sessions.py",
    }


def test_who_may_use_no_model_is_told_so(
    client: Client, user: User, rights: GroupRights, session: Session, as_user: Callable[..., Any]
) -> None:
    rights.model_names = []
    rights.save()
    client.force_login(user)
    assert "You may use none of the language models" in client.get("/new/").content.decode()
    assert client.get("/new/model/").headers.get("HX-Refresh") is None
