"""The SDKs' clients of Bedrock, Vertex and Azure, as far as their wires go over loopback."""

import base64
import json
import struct
import zlib
from dataclasses import replace

import pytest

from chatcore.providers import client as provider_client
from chatcore.providers.errors import (
    ContextOverflow,
    ProviderRejected,
    ProviderUnavailable,
)
from tests.support.provider_calls import (
    KEY,
    build_connection,
    catch_error,
    collect_parts,
    get_end,
    join_text,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Event, Reply, build_anthropic_events


def list_events(text: str) -> list[Event]:
    return list(build_anthropic_events(Reply(text=text), {"model": "test-model"}))


def build_frame(event: Event) -> bytes:
    """Encode one event as Amazon does: lengths, headers, payload, and a checksum after each."""
    headers = {
        ":event-type": "chunk",
        ":content-type": "application/json",
        ":message-type": "event",
    }
    head = b"".join(
        struct.pack("!B", len(name))
        + name.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for name, value in headers.items()
    )
    data = base64.b64encode(json.dumps(event.data).encode()).decode()
    payload = json.dumps({"bytes": data}).encode()
    frame = struct.pack("!II", len(head) + len(payload) + 16, len(head))
    frame += struct.pack("!I", zlib.crc32(frame)) + head + payload
    return frame + struct.pack("!I", zlib.crc32(frame))


async def test_azure_calls_the_deployment_of_the_model(scripted: ScriptedModel) -> None:
    scripted.script(Reply(text="From Azure."))
    options = {"client": "azure", "api_version": "2026-06-01"}
    connection = build_connection(scripted, "openai", options=options)
    connection = replace(connection, base_url=scripted.anthropic_base_url)
    assert join_text(await collect_parts(connection)) == "From Azure."
    request = scripted.requests[0]
    assert request.path == (
        "/openai/deployments/test-model/chat/completions?api-version=2026-06-01"
    )
    assert request.headers["api-key"] == KEY


async def test_azure_refuses_a_long_request_as_openai_does(scripted: ScriptedModel) -> None:
    scripted.script(Reply(status=400, text="content_length_exceeded"))
    connection = build_connection(
        scripted, "openai", options={"client": "azure", "api_version": "2026-06-01"}
    )
    assert isinstance(await catch_error(connection), ContextOverflow)


async def test_vertex_calls_the_publishers_model_with_a_token(scripted: ScriptedModel) -> None:
    body = b"".join(event.encode() for event in list_events("From Vertex."))
    scripted.script(Reply(body=body, headers={"Content-Type": "text/event-stream"}))
    options = {"client": "vertex", "region": "europe-west1", "project": "acme"}
    parts = await collect_parts(build_connection(scripted, "anthropic", options=options))
    assert join_text(parts) == "From Vertex."
    request = scripted.requests[0]
    assert request.path == (
        "/projects/acme/locations/europe-west1/publishers/anthropic/models/"
        "test-model:streamRawPredict"
    )
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert "model" not in request.json
    assert request.json["anthropic_version"]


async def test_bedrock_invokes_the_model_and_reads_amazons_stream(
    scripted: ScriptedModel,
) -> None:
    pytest.importorskip("botocore", reason="anthropic[bedrock] is an optional package")
    body = b"".join(map(build_frame, list_events("From Bedrock.")))
    scripted.script(
        Reply(body=body, headers={"Content-Type": "application/vnd.amazon.eventstream"})
    )
    options = {"client": "bedrock", "region": "eu-west-1"}
    parts = await collect_parts(build_connection(scripted, "anthropic", options=options))
    assert join_text(parts) == "From Bedrock."
    assert get_end(parts).reason == "stop"
    assert get_end(parts).usage is not None
    request = scripted.requests[0]
    assert request.path == "/model/test-model/invoke-with-response-stream"
    assert request.headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.parametrize(("client", "key"), [("bedrock", KEY), ("vertex", "")])
async def test_a_package_that_is_missing_is_named(
    client: str, key: str, scripted: ScriptedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_client, "find_spec", lambda name: None)
    connection = build_connection(scripted, "anthropic", options={"client": client}, api_key=key)
    error = await catch_error(connection)
    assert isinstance(error, ProviderUnavailable)
    assert f"pip install 'anthropic[{client}]'" in error.detail
    assert not scripted.requests


@pytest.mark.parametrize(
    ("protocol", "client", "others"),
    [("openai", "bedrock", "azure"), ("anthropic", "azure", "bedrock, vertex")],
)
async def test_a_client_of_another_protocol_is_refused_by_name(
    protocol: str, client: str, others: str, scripted: ScriptedModel
) -> None:
    connection = build_connection(scripted, protocol, options={"client": client})
    error = await catch_error(connection)
    assert isinstance(error, ProviderRejected)
    assert error.detail == f"This protocol has no client '{client}'; there are {others}."
