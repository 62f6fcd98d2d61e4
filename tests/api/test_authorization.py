"""Permissions: every route with every method, every id, and everyone who must not use it.

A new route without a row in MATRIX fails.
"""

import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.http import HttpResponse
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart
from django.urls import URLPattern, URLResolver, get_resolver
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.imports.models import Import
from chatcore.contrib.prompts.models import Prompt
from chatcore.contrib.sent_requests.records import store_request
from chatcore.contrib.sharing.models import Share
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.models import Attachment, McpServer, Message, Session, Turn
from chatcore.projects.changes import add_file, create_project
from chatcore.providers.base import Request
from compaction.memory.models import LedgerLine, StandingRule
from compaction.models import CompactionRun, ModelCall, pack_text
from compaction.systems.lota.models import WorkingState
from tests.support.route_matrix import (
    CALL,
    CONVERSATION,
    HOOK,
    ITEM,
    LINE,
    MATRIX,
    MESSAGE,
    RESPONSE,
    RULE,
    RUN,
    SERVER,
    SESSION,
)
from tests.support.told_summaries import store_summaries

pytestmark = pytest.mark.django_db
METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
SAFE = ("GET", "HEAD", "OPTIONS")
RIGHTS: list[Any] = [
    {},
    pytest.param({"is_staff": True}, marks=pytest.mark.slow),
    pytest.param({"is_staff": True, "is_superuser": True}, marks=pytest.mark.slow),
]  # of who is not the owner
SECRET = "Alice's secret"
API_PATHS = ("api/v1/", "v1/")
JSON, PROBLEM = "application/json", "application/problem+json"
UNKNOWN_PATH_ROUTES = ("v1/", "v1/messages/")  # answers unknown paths of the API of OpenAI


def list_routes(patterns: list[Any] | None = None, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield each route of the APIs, and its view."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = before + str(pattern.pattern).removeprefix("^")
        if isinstance(pattern, URLResolver):
            yield from list_routes(pattern.url_patterns, route)
        elif (
            isinstance(pattern, URLPattern)
            and route.startswith(API_PATHS)
            and route not in UNKNOWN_PATH_ROUTES
        ):
            either = route.endswith("/?$")  # one pattern with and without a slash at its end
            plain = route.removesuffix("/?$")
            yield from (
                (plain + end, getattr(pattern.callback, "cls", None))
                for end in (("", "/") if either else ("",))
            )


@dataclass
class OwnedRows:
    """All that Alice has. `ids` lists by route parameter her ids first, and last one of nobody."""

    user: User
    token: str
    ids: dict[str, list[Any]] = field(default_factory=dict)


@pytest.fixture
def owned_rows(user: User) -> OwnedRows:
    """Create one row of everything that has a route, or several where they differ."""
    row, token = AuthToken.objects.create(user)
    session = Session.objects.create(
        owner=user, title=SECRET, compacted_summary=SECRET, compact_boundary_seq=2, last_seq=4
    )
    turn = Turn.objects.create(
        session=session, status=Turn.Status.COMPLETED, lease_until="2026-01-01T00:00Z"
    )
    roles = ("system", "user", "assistant", "tool")
    messages = [
        Message.objects.create(
            session=session,
            turn=turn,
            seq=seq,
            role=role,
            content=SECRET,
            tool_call_id="c1" if role == "tool" else "",
        )
        for seq, role in enumerate(roles, start=1)
    ]
    request = Request(model="model", system=SECRET)
    store_request(None, message=messages[0], request=request, left_out=())
    file_fields = {
        "session": session,
        "name": SECRET,
        "media_type": "text/plain",
        "size": 6,
        "data": SECRET.encode(),
        "text": SECRET,
    }
    files = [
        Attachment.objects.create(**file_fields),
        Attachment.objects.create(**file_fields, message=messages[1]),
    ]
    run = CompactionRun.objects.create(
        session=session,
        trigger="manual",
        status="applied",
        policy="oneclaw",
        **store_summaries(session, after=SECRET),
    )
    texts = {"request": pack_text(SECRET), "answer": pack_text(SECRET)}
    ModelCall.objects.create(run=run, number=1, claim=1, part=1, attempt=1, **texts)
    WorkingState.objects.create(session=session, state={"tasks": [SECRET]})
    line = LedgerLine.objects.create(session=session, kind="rule", text=SECRET, seq=2, role="user")
    rule = StandingRule.objects.create(owner=user, kind="rule", text=SECRET)
    response = StoredResponse.objects.create(session=session, turn=turn, input_seq=2)
    hook = Webhook.objects.create(owner=user, url="https://example.com/alice", secret="x")
    WebhookDelivery.objects.create(webhook=hook, event="turn.completed", payload={"text": SECRET})
    server = McpServer.objects.create(owner=user, name="alice", url="http://127.0.0.1/mcp")
    prompt = Prompt.objects.create(owner=user, name="alice", text=SECRET)
    share = Share.objects.create(owner=user, session=session, title=SECRET, digest="x", last_seq=4)
    project = create_project(user, {"name": SECRET, "instructions": SECRET, "rules": [SECRET]})
    project_file = add_file(project, name=SECRET, data=SECRET.encode())
    arrival = Import.objects.create(owner=user, status=Import.Status.DONE, detail=SECRET)
    problem = arrival.problems.create(
        title=SECRET,
        reasons=[SECRET],
        original=zlib.compress(SECRET.encode()),
        original_size=len(SECRET),
    )
    ids: dict[str, list[Any]] = {
        "<uuid:import_id>": [arrival.pk, uuid4()],
        "<int:problem_id>": [problem.pk, 0, 10**30],
        "<uuid:project_id>": [project.pk, uuid4()],
        "<uuid:file_id>": [project_file.pk, uuid4()],
        SERVER: [server.pk, uuid4()],
        SESSION: [session.pk, uuid4()],
        LINE: [line.pk, 0, 10**30],
        RULE: [rule.pk, 0, 10**30],
        MESSAGE: [*(message.pk for message in messages), 0, 2**31, 10**30],
        "<uuid:attachment_id>": [*(file.pk for file in files), uuid4()],
        RUN: [run.pk, uuid4()],
        "<uuid:share_id>": [share.pk, uuid4()],
        CALL: [1, 2, 10**30],
        HOOK: [hook.pk, uuid4()],
        "<uuid:prompt_id>": [prompt.pk, uuid4()],
        "<str:token_id>": [row.token_key, "0" * 15, "%00"],
        "<path:name>": ["no-such-model"],
        "<slug:name>": ["no-such-provider"],
        RESPONSE: [str(response), f"resp_{uuid4().hex}", "resp_none"],
        CONVERSATION: [f"conv_{session.pk.hex}", f"conv_{uuid4().hex}", "conv_none"],
        ITEM: [f"msg_{session.pk.hex}{2:08x}", f"msg_{uuid4().hex}{2:08x}", "msg_none"],
    }
    return OwnedRows(user=user, token=token, ids=ids)


def dump_rows() -> dict[str, list[dict[str, Any]]]:
    """Return every row that the APIs can change."""
    models = [
        model
        for app in ("chatcore", "compaction", "memory", "lota", "knox")
        for model in apps.get_app_config(app).get_models()
    ]
    return {
        model.__name__: list(model._default_manager.order_by("pk").values()) for model in models
    }


def build_paths(route: str, owned_rows: OwnedRows) -> list[str]:
    """Return the paths of a route, one for each id of its last part that has one."""
    names = sorted((name for name in owned_rows.ids if name in route), key=route.index)
    for name in names[:-1]:
        route = route.replace(name, str(owned_rows.ids[name][0]))
    id_name = names[-1] if names else None
    return (
        [f"/{route.replace(id_name, str(value))}" for value in owned_rows.ids[id_name]]
        if id_name
        else [f"/{route}"]
    )


def hide_ids(text: str, owned_rows: OwnedRows) -> str:
    """Make all ids of a text look the same, because OpenAI's errors repeat that of the request."""
    for value in (str(value) for values in owned_rows.ids.values() for value in values):
        text = text.replace(f"'{value}'", "an id")
    return text


def send_request(client: APIClient, method: str, address: str, body: Any) -> HttpResponse:
    if body == "a file":
        form, kind = _form()
        return client.generic(method, address, form, content_type=kind)
    if method == "GET":
        return client.get(address, body)
    return getattr(client, method.lower())(address, body)


def _form() -> tuple[Any, str]:
    return encode_multipart(
        BOUNDARY, {"file": SimpleUploadedFile("a.txt", b"Hi")}
    ), MULTIPART_CONTENT


def send_all_requests(
    client: Callable[[], APIClient], owned_rows: OwnedRows, methods: tuple[str, ...] = METHODS
) -> Iterator[tuple[str, Any]]:
    """Yield method, path and response for every route, every method and one of her ids."""
    for route, row in MATRIX.items():
        address = build_paths(route, owned_rows)[0]
        for method in methods:
            yield f"{method} {address}", send_request(client(), method, address, row.get(method))


def build_token_client(token: str) -> APIClient:
    return APIClient(headers={"Authorization": f"Bearer {token}"})


def find_wrong_answers(
    answers: Iterator[tuple[str, Any]], expected: set[int]
) -> list[tuple[str, int]]:
    """Return the responses with another status, with her secret, or that are not problems."""
    return [
        (where, answer.status_code)
        for where, answer in answers
        if answer.status_code not in expected
        or SECRET in answer.content.decode()
        or answer["Content-Type"] != (JSON if " /v1/" in where else PROBLEM)
    ]


def test_every_address_has_a_row_with_its_methods() -> None:
    views = {route: view for route, view in list_routes() if not route.endswith("/")}
    assert {
        route: {method for method in METHODS[3:] + METHODS[:1] if hasattr(view, method.lower())}
        for route, view in views.items()
    } == {route: set(row) for route, row in MATRIX.items()}


def test_an_address_that_ends_in_a_slash_is_the_one_without() -> None:
    views = dict(list_routes())
    twins = {route: view for route, view in views.items() if route.endswith("/")}
    assert {route + "/": views[route] for route in MATRIX if "<path:" not in route} == twins


def test_nobody_is_401_everywhere(owned_rows: OwnedRows) -> None:
    stranger, before = APIClient(), dump_rows()  # a new one builds all middleware anew
    assert find_wrong_answers(send_all_requests(lambda: stranger, owned_rows), {401}) == []
    assert not stranger.cookies
    assert dump_rows() == before


@pytest.mark.slow  # it visits every route, as the two before it do
def test_the_owner_with_an_expired_token_is_401_everywhere(owned_rows: OwnedRows) -> None:
    before = dump_rows()

    def client() -> APIClient:
        _, token = AuthToken.objects.create(
            owned_rows.user, expiry=timedelta(seconds=-1)
        )  # knox deletes it when it is used
        return build_token_client(token)

    assert find_wrong_answers(send_all_requests(client, owned_rows), {401}) == []
    assert dump_rows() == before


@pytest.mark.heavy
@pytest.mark.slow
def test_an_owner_who_was_switched_off_is_401_everywhere_by_token_and_by_cookie(
    owned_rows: OwnedRows,
) -> None:
    browser, program = APIClient(), build_token_client(owned_rows.token)
    browser.force_login(owned_rows.user)
    User.objects.filter(pk=owned_rows.user.pk).update(is_active=False)
    before = dump_rows()
    assert find_wrong_answers(send_all_requests(lambda: program, owned_rows), {401}) == []
    assert find_wrong_answers(send_all_requests(lambda: browser, owned_rows), {401}) == []
    assert dump_rows() == before


@pytest.mark.heavy
@pytest.mark.parametrize("rights", RIGHTS)
def test_whoever_is_not_the_owner_is_404_for_every_id(
    owned_rows: OwnedRows, rights: dict[str, Any]
) -> None:
    _, token = AuthToken.objects.create(User.objects.create_user("mallory", **rights))
    client, before = build_token_client(token), dump_rows()
    for route, row in MATRIX.items():
        if "<" not in route:
            continue
        for method in METHODS:
            there = method in row or (method == "HEAD" and "GET" in row)
            answers = [
                (f"{method} {place}", send_request(client, method, place, row.get(method)))
                for place in build_paths(route, owned_rows)
            ]
            assert find_wrong_answers(iter(answers), {404 if there else 405}) == []
            texts = {hide_ids(answer.content.decode(), owned_rows) for _, answer in answers}
            assert len(texts) == 1, f"{method} {route} tells what there is from what there is not"
    assert dump_rows() == before


@pytest.mark.parametrize("rights", RIGHTS)
def test_lists_show_nothing_of_anybody_else(owned_rows: OwnedRows, rights: dict[str, Any]) -> None:
    _, token = AuthToken.objects.create(User.objects.create_user("mallory", **rights))
    hers = [
        str(value) for values in owned_rows.ids.values() for value in values if len(str(value)) > 8
    ]
    for route, row in MATRIX.items():
        # What the archive of all that is one's own has is a test of test_lives_of_data.py.
        if "<" not in route and "GET" in row and not route.endswith("/export"):
            answer = send_request(build_token_client(token), "GET", f"/{route}", row["GET"])
            text = answer.content.decode()
            assert answer.status_code == 200, route
            assert not [secret for secret in (SECRET, "example.com", *hers) if secret in text], (
                route
            )


def test_a_cookie_without_the_csrf_token_writes_nothing(owned_rows: OwnedRows) -> None:
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(owned_rows.user)
    before = dump_rows()
    writes = tuple(method for method in METHODS if method not in SAFE)
    answers = list(send_all_requests(lambda: browser, owned_rows, writes))
    assert (
        find_wrong_answers(
            ((where, answer) for where, answer in answers if " /v1/" not in where), {403}
        )
        == []
    )
    assert (
        find_wrong_answers(
            ((where, answer) for where, answer in answers if " /v1/" in where), {401}
        )
        == []
    )  # tokens alone
    assert dump_rows() == before


def test_the_owner_is_let_in_where_the_others_were_not(owned_rows: OwnedRows) -> None:
    """Otherwise the matrix could pass because nothing works."""
    client = build_token_client(owned_rows.token)
    for route, row in MATRIX.items():
        if "GET" in row and not route.endswith(("/events", "<path:name>")):
            assert (
                send_request(
                    client, "GET", build_paths(route, owned_rows)[0], row["GET"]
                ).status_code
                == 200
            ), route
