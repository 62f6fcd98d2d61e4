"""Models, policies and tools that a group does not allow, tried by every API that takes a name."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from chatcore.contrib.group_rights.models import GroupRights
from chatcore.models import Session
from models_registry.models import AiModel
from tests.support.scripted_model import ScriptedModel, make_tool_call
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
HIDDEN, ABSENT, ALLOWED = "scripted/hidden-model", "scripted/absent-model", "scripted/test-model"
HELLO = [{"role": "user", "content": "Hi"}]
SESSIONS, SESSION = "/api/v1/sessions", "/api/v1/sessions/{session}"
Way = tuple[str, str, dict[str, Any]]
# Each way to name a model: the method, the path, and the body besides the name.
MODEL_WAYS: list[Way] = [
    ("post", SESSIONS, {}),
    ("patch", SESSION, {}),
    ("post", "/v1/chat/completions", {"messages": HELLO}),
    ("post", "/v1/chat/completions", {"messages": HELLO, "stream": True}),
    ("post", "/v1/chat/completions", {"messages": HELLO, "session": "x"}),
    ("post", "/v1/completions", {"prompt": "Hi"}),
    ("post", "/v1/embeddings", {"input": "Hi"}),
    ("post", "/v1/responses", {"input": "Hi"}),
    ("post", "/v1/responses", {"input": "Hi", "store": False}),
    ("post", "/v1/responses", {"input": "Hi", "stream": True}),
    ("post", "/v1/responses", {"input": "Hi", "background": True}),
    ("post", "/v1/responses/input_tokens", {"input": "Hi"}),
    ("post", "/v1/responses/compact", {"input": "Hi"}),
    ("post", "/v1/messages", {"messages": HELLO, "max_tokens": 9}),
    ("post", "/v1/messages", {"messages": HELLO, "max_tokens": 9, "stream": True}),
    ("post", "/v1/messages/count_tokens", {"messages": HELLO}),
    ("get", "/v1/models/{model}", {}),
]
POLICY_WAYS: list[Way] = [
    ("post", SESSIONS, {}),
    ("patch", SESSION, {}),
    ("post", f"{SESSION}/compact", {}),
]
TOOL_WAYS: list[Way] = [("post", SESSIONS, {}), ("patch", SESSION, {})]


@pytest.fixture
def rights(user: User, model: AiModel) -> GroupRights:
    """Alice's group may use one model, one policy and one tool."""
    AiModel.objects.create(provider=model.provider, name="hidden-model", supports_tools=True)
    group = Group.objects.create(name="Team")
    user.groups.add(group)
    return GroupRights.objects.create(
        group=group,
        limits_models=True,
        model_names=[ALLOWED],
        limits_policies=True,
        policy_names=["oneclaw"],
        limits_tools=True,
        tool_names=["calculate"],
    )


def ask(api: APIClient, way: Way, session: Session, **named: Any) -> Any:
    method, path, body = way
    path = path.format(session=session.pk, model=named.get("model"))
    answer = getattr(api, method)(path, {} if method == "get" else body | named)
    content = b"".join(answer) if answer.streaming else answer.content
    return answer.status_code, content.decode()


def strip(answer: tuple[int, str], name: str) -> tuple[int, str]:
    """Return an answer without what names the thing or the request."""
    return answer[0], re.sub(rf'{re.escape(name)}|"request_id".*', "", answer[1])


@pytest.mark.parametrize("way", MODEL_WAYS, ids=lambda way: f"{way[0]} {way[1]} {sorted(way[2])}")
def test_a_forbidden_model_is_as_if_it_were_not_there(
    api: APIClient,
    rights: GroupRights,
    session: Session,
    scripted: ScriptedModel,
    way: Way,
) -> None:
    hidden, absent = (ask(api, way, session, model=name) for name in (HIDDEN, ABSENT))
    assert 400 <= hidden[0] < 500, hidden
    assert strip(hidden, HIDDEN) == strip(absent, ABSENT)
    assert scripted.requests == []
    assert not Session.all_objects.filter(model__name="hidden-model").exists()
    User.objects.update(is_superuser=True)  # the way itself is open
    assert strip(ask(api, way, session, model=HIDDEN), HIDDEN) != strip(absent, ABSENT)


@pytest.mark.parametrize("way", POLICY_WAYS, ids=lambda way: f"{way[0]} {way[1]}")
def test_a_forbidden_policy_is_as_if_it_were_not_there(
    api: APIClient, rights: GroupRights, session: Session, way: Way
) -> None:
    hidden, absent = (ask(api, way, session, policy=name) for name in ("claudecode", "absent"))
    assert hidden[0] == 400
    assert strip(hidden, "claudecode") == strip(absent, "absent")
    assert ask(api, way, session, policy="oneclaw")[0] < 400


@pytest.mark.parametrize("way", TOOL_WAYS, ids=lambda way: f"{way[0]} {way[1]}")
def test_a_forbidden_tool_cannot_be_chosen(
    api: APIClient, rights: GroupRights, session: Session, way: Way
) -> None:
    hidden, absent = (ask(api, way, session, tools=[name]) for name in ("fetch_url", "absent"))
    assert hidden[0] == 400
    assert strip(hidden, "fetch_url") == strip(absent, "absent")
    assert ask(api, way, session, tools=["calculate"])[0] < 400


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (f"{SESSION}/messages", {"content": "Hi"}, {}),
        ("/v1/chat/completions", {"messages": HELLO, "model": ALLOWED}, {"X-Session-Id": "s"}),
        ("/v1/responses", {"input": "Hi", "model": ALLOWED}, {}),
        ("/v1/messages", {"messages": HELLO, "model": ALLOWED, "max_tokens": 9}, {}),
    ],
)
def test_a_forbidden_tool_is_offered_by_no_api_and_does_not_run(
    api: APIClient,
    rights: GroupRights,
    session: Session,
    scripted: ScriptedModel,
    path: str,
    body: dict[str, Any],
    headers: dict[str, str],
) -> None:
    call = make_tool_call("search_history", {"query": "Hi"})
    scripted.script(Reply(tool_calls=(call,)), Reply(text="Then not."))
    api.post(path.format(session=session.pk), body, headers=headers)
    for request in scripted.requests:
        offered = {tool["function"]["name"] for tool in request.json.get("tools", [])}
        assert offered <= {"calculate"}
    results = [
        message["content"]
        for request in scripted.requests
        for message in request.json["messages"]
        if message["role"] == "tool"
    ]
    refusals = ("may not use the tool", "is not switched on", "no tool called")
    assert all(any(words in text for words in refusals) for text in results), results
    assert scripted.requests
