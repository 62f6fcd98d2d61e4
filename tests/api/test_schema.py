"""The OpenAPI document: valid, complete, and equal to docs/openapi.json."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate
from rest_framework.test import APIClient

from chatcore.models import Session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

CHECKED_IN = Path(__file__).resolve().parents[2] / "docs" / "openapi.json"
CONTRACT = {
    "/sessions": "get post",
    "/sessions/{session_id}": "get patch delete",
    "/sessions/{session_id}/messages": "get post",
    "/sessions/{session_id}/messages/import": "post",
    "/sessions/{session_id}/tool_results": "post",
    "/sessions/{session_id}/approvals": "get post delete",
    "/projects": "get post",
    "/projects/{project_id}": "get patch delete",
    "/projects/{project_id}/files": "get post",
    "/projects/{project_id}/files/{file_id}": "get delete",
    "/mcp_servers": "get post",
    "/mcp_servers/{server_id}": "get patch delete",
    "/mcp_servers/{server_id}/refresh": "post",
    "/sessions/{session_id}/attachments": "get post",
    "/attachments/inspect": "post",
    "/attachments/{attachment_id}": "get delete",
    "/sessions/{session_id}/cancel": "post",
    "/sessions/{session_id}/events": "get",
    "/sessions/{session_id}/context": "get",
    "/sessions/{session_id}/context/rewind": "post",
    "/sessions/{session_id}/context/preview": "get",
    "/sessions/{session_id}/context/history": "get",
    "/sessions/{session_id}/context/missing": "get",
    "/sessions/{session_id}/context/undo": "post",
    "/sessions/{session_id}/context/redo": "post",
    "/sessions/{session_id}/compact": "post",
    "/sessions/{session_id}/compactions": "get",
    "/compactions/{run_id}": "get",
    "/compactions/{run_id}/calls": "get",
    "/compactions/{run_id}/calls/{number}": "get",
    "/compactions/{run_id}/rewind": "post",
    "/compactions/{run_id}/cancel": "post",
    "/sessions/{session_id}/summary": "patch delete",
    "/sessions/{session_id}/state": "get patch",
    "/sessions/{session_id}/memory": "post",
    "/sessions/{session_id}/ledger": "get post",
    "/sessions/{session_id}/ledger/{line_id}": "get patch delete",
    "/sessions/{session_id}/rules": "get patch",
    "/rules": "get post",
    "/rules/{rule_id}": "get patch delete",
    "/sessions/{session_id}/search": "get",
    "/sessions/{session_id}/export": "get",
    "/sessions/{session_id}/shares": "post",
    "/shares": "get",
    "/shares/{share_id}": "delete",
    "/export": "get",
    "/imports": "post",
    "/imports/uploads": "post",
    "/imports/{import_id}": "get delete",
    "/imports/{import_id}/files/{file_id}": "put",
    "/imports/{import_id}/problems/{problem_id}/original": "get",
    "/sessions/import": "post",
    "/messages/{message_id}": "patch delete",
    "/messages/{message_id}/fork": "post",
    "/messages/{message_id}/pin": "post",
    "/messages/{message_id}/regenerate": "post",
    "/messages/{message_id}/request": "get",
    "/messages/{message_id}/restore": "post",
    "/search": "get",
    "/models": "get",
    "/policies": "get",
    "/setup": "get patch",
    "/setup/providers/{name}/test": "post",
    "/tokens": "get post delete",
    "/tokens/{token_id}": "patch delete",
    "/usage": "get",
    "/preferences": "get patch",
    "/prompts": "get post",
    "/prompts/{prompt_id}": "get patch delete",
    "/webhooks": "get post",
    "/webhooks/{webhook_id}": "get patch delete",
    "/webhooks/{webhook_id}/deliveries": "get",
}


@pytest.fixture
def schema(client: Client, db: None) -> dict[str, Any]:
    document: dict[str, Any] = client.get("/api/schema/").json()
    return document


def test_it_is_valid_openapi_3_1(schema: dict[str, Any]) -> None:
    assert schema["openapi"].startswith("3.1")
    validate(schema)


def test_it_has_every_route_of_the_contract_and_no_other(schema: dict[str, Any]) -> None:
    assert {path: set(item) for path, item in schema["paths"].items()} == {
        f"/api/v1{path}": set(methods.split()) for path, methods in CONTRACT.items()
    }


def test_it_is_the_document_that_is_checked_in(schema: dict[str, Any]) -> None:
    assert json.loads(CHECKED_IN.read_text()) == schema, (
        "./manage.py spectacular --format openapi-json --file docs/openapi.json"
    )


def test_every_operation_declares_its_problems(schema: dict[str, Any]) -> None:
    for path, item in schema["paths"].items():
        for method, operation in item.items():
            refusals = {
                code: body for code, body in operation["responses"].items() if code >= "400"
            }
            assert "401" in refusals, (path, method)
            assert ("404" in refusals) == ("{" in path), (path, method)
            assert all(
                set(body["content"]) == {"application/problem+json"} for body in refusals.values()
            )


def test_the_documentation_can_be_browsed_without_an_inline_script(
    client: Client, db: None
) -> None:
    page = client.get("/api/docs/")
    assert page.status_code == 200
    assert page["Content-Type"].startswith("text/html")
    assert "<script>" not in page.content.decode()
    assert client.get("/api/docs/?script=")["Content-Type"].startswith("application/javascript")


READ = [
    "/sessions",
    "/sessions/{session_id}",
    "/sessions/{session_id}/messages",
    "/sessions/{session_id}/context",
    "/sessions/{session_id}/context/preview",
    "/sessions/{session_id}/context/history",
    "/sessions/{session_id}/compactions",
    "/sessions/{session_id}/state",
    "/models",
    "/policies",
    "/usage",
]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("path", READ)
def test_what_is_answered_is_what_is_described(
    schema: dict[str, Any], api: APIClient, full: Session, scripted: ScriptedModel, path: str
) -> None:
    scripted.script(Reply(text="Fine."), Reply(text="They spoke of herons."))
    address = f"/api/v1/sessions/{full.pk}"
    assert api.post(f"{address}/messages", {"content": "Well?"}).status_code == 201
    api.post(f"{address}/compact", {"wait": True})
    answer = api.get(f"/api/v1{path.replace('{session_id}', str(full.pk))}")
    operation = schema["paths"][f"/api/v1{path}"]["get"]
    described = operation["responses"][str(answer.status_code)]["content"]["application/json"]
    Draft202012Validator({**schema, **described["schema"]}).validate(answer.json())
