"""Hundreds of wrong values: each is refused in words, or taken without harm."""

import copy
import json
import random
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.context import builder, revisions
from chatcore.models import Session
from chatcore.providers import anthropic, openai
from chatcore.providers.base import ToolCall
from chatcore.providers.params import PARAM_RULES
from chatcore.sessions import verification
from chatcore.tools import registry as tool_registry
from chatcore.transfer import exporter, importer
from tests.support.forgeries import FORGERIES

pytestmark = pytest.mark.django_db(transaction=True)

VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2**31, 2**63, 10**30, 1.5, 1e308, "", "x", "1", "\x00", "\ud800",
    "x" * 5_000, [], [None], [[]], {}, {"a": None}, {"": ""}, [1, "x", {}], {"type": "thinking"},
    "2026-01-01T00:00:00Z", "9999-12-31T23:59:59-23:59", str(uuid.UUID(int=7)), "chatcore", "tool",
    *FORGERIES[::20],
]  # fmt: skip


def list_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in a JSON value."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, item in items:
        yield (*path, key)
        yield from list_paths(item, (*path, key))


def change_one(data: Any, chance: random.Random) -> Any:
    """Return the value with one of its parts replaced, left out, or given twice."""
    changed = copy.deepcopy(data)
    *folders, key = chance.choice(list(list_paths(changed)))
    place = changed
    for folder in folders:
        place = place[folder]
    act = chance.randrange(8)
    if act == 0:
        del place[key]
    elif act == 1 and isinstance(place, list):
        place.insert(0, copy.deepcopy(place[key]))
    elif act == 2 and isinstance(place, dict):
        place[chance.choice(["extra", "role", "seq", "branch"])] = chance.choice(VALUES)
    else:
        place[key] = chance.choice(VALUES)
    return changed


@pytest.fixture
def export_data(session: Session) -> Any:
    """An export with everything that one can have: calls, versions, files, a context, a ledger."""
    calls = [{"id": "c1", "name": "calculate", "arguments": '{"expression": "1"}'}]
    importer.import_messages(
        session,
        [
            {"role": "user", "content": "Never book a flight on a Sunday from now on."},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "content": "1", "tool_call_id": "c1", "tool_name": "calculate"},
            {"role": "assistant", "content": "Done."},
        ],
    )
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary="They talked.",
        boundary_seq=4,
        kept_seqs=[1],
        background="Known.",
        placement={"place": "first_user", "summarized_up_to": 3},
        edits=[revisions.MessageEdit(message_seq=4, kind="pruned", replacement="Done.")],
        source="compaction",
    )
    session.refresh_from_db()
    data = json.loads(json.dumps(exporter.export_session(session)))
    data["messages"][0]["attachments"] = [{"name": "a.txt", "data": "SGk="}]
    data["ledger"] = [
        {
            "kind": "rule",
            "status": "current",
            "seq": 1,
            "text": "Never book a flight.",
            "original_text": "Never book a flight.",
            "role": "user",
            "key": "book",
            "pinned": True,
            "is_edited": False,
        }
    ]
    return data


@pytest.mark.slow
@pytest.mark.lasting
def test_an_import_is_refused_by_the_field_or_makes_a_sound_session(
    api: APIClient, export_data: Any
) -> None:
    chance = random.Random(7)
    statuses = []
    for _ in range(200):
        data = export_data
        for _ in range(chance.choice((1, 1, 2, 5))):
            data = change_one(data, chance)
        answer = api.post(
            "/api/v1/sessions/import", json.dumps(data), content_type="application/json"
        )
        statuses.append(answer.status_code)
        assert answer.status_code in (201, 400, 413), (answer.status_code, data)
        if answer.status_code == 400:
            assert answer.json()["errors"][0]["field"], data
        if answer.status_code == 201:
            made = Session.objects.get(pk=answer.json()["id"])
            assert list(verification.find_violations(made)) == [], data
            request = builder.build_request(made)
            assert openai.build_messages(request), data
            assert anthropic.build_messages(request) is not None
            shown = api.get(f"/api/v1/sessions/{made.pk}/context/preview")
            assert shown.status_code == 200, data
    assert statuses.count(201) > 10
    assert statuses.count(400) > 50


@pytest.mark.slow
def test_messages_of_others_formats_are_refused_by_the_field_or_taken(
    api: APIClient, session: Session
) -> None:
    chance = random.Random(7)
    function = {"name": "look", "arguments": "{}"}
    bodies: list[Any] = [
        {
            "format": "openai",
            "messages": [
                {"role": "user", "content": [{"type": "text", "text": "Hi"}]},
                {"role": "assistant", "content": None, "tool_calls": [
                    {"id": "c1", "type": "function", "function": function}
                ]},
                {"role": "tool", "tool_call_id": "c1", "content": "42"},
            ],
        },
        {
            "format": "anthropic",
            "messages": [
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "look", "input": {"a": 1}}
                ]},
                {"role": "user", "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": "42"}
                ]},
            ],
        },
    ]  # fmt: skip
    address = f"/api/v1/sessions/{session.pk}/messages/import"
    for number in range(200):
        body = change_one(bodies[number % 2], chance)
        answer = api.post(address, json.dumps(body), content_type="application/json")
        assert answer.status_code in (201, 400, 413), (answer.status_code, body)


@pytest.mark.slow
@pytest.mark.heavy
def test_a_parameter_is_refused_by_its_name_or_shown_as_it_will_be_sent(
    api: APIClient, session: Session
) -> None:
    address = f"/api/v1/sessions/{session.pk}"
    for name in (*PARAM_RULES, "model", "", "a.b", "__proto__", "extra_body", "x" * 300):
        for value in VALUES[::5]:
            body = json.dumps({"params": {name: value}})
            answer = api.patch(address, body, content_type="application/json")
            assert answer.status_code in (200, 400), (name, value, answer.content)
            if answer.status_code == 400:
                assert answer.json()["errors"][0]["field"].startswith("params"), (name, value)
    assert api.get(f"{address}/context/preview").status_code == 200


def test_no_argument_of_a_tool_raises(session: Session, user: User) -> None:
    chance = random.Random(7)
    texts = ["", "{", "[]", "null", '"x"', "1" * 5_000, "{" * 500, '{"a":' * 500, "\x00", "\ud800"]
    for name, tool in tool_registry.BUILT_IN_TOOLS.items():
        names = [*tool.parameters["properties"], "extra"]
        for _ in range(40):
            values = {each: chance.choice(VALUES) for each in names if chance.random() < 0.7}
            texts.append(json.dumps(values))
        for text in texts:
            call = ToolCall(id="c1", name=name, arguments=text)
            outcome = tool_registry.run_tool(call, session_id=session.pk)
            assert outcome.content != f"The tool {name} failed.", text
