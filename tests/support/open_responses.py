"""The published standard: check objects and events of `/v1/responses` against it."""

import functools
import json
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from openai import OpenAI
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter
from referencing import Registry, Resource

MODEL = "scripted/test-model"
DOCUMENT_PATH = Path(__file__).resolve().parents[1] / "data" / "openresponses-2026-04-24.json"
DOCUMENT_URI = "urn:openresponses"
# What OpenAI's SDK and clients know besides the standard.
OTHER_EVENTS = frozenset({"response.compaction.compacting"})
SDK_EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
WEATHER: Any = {
    "type": "function",
    "name": "weather",
    "description": "The weather now.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    "strict": False,
}


def find_violations(schema_name: str, value: Any) -> list[str]:
    """Return what the standard finds wrong with a value, as paths and sentences."""
    errors = _build_validator(schema_name).iter_errors(value)
    return [f"{schema_name}{error.json_path[1:]}: {error.message[:200]}" for error in errors]


def check_response(resource: Any) -> None:
    assert find_violations("ResponseResource", resource) == []


def without_servers(resource: dict[str, Any]) -> dict[str, Any]:
    """Return a response without MCP servers, which only OpenAI's SDK knows, as its types say."""
    items = [item for item in resource["output"] if not item["type"].startswith("mcp_")]
    tools = [tool for tool in resource["tools"] if tool["type"] != "mcp"]
    return resource | {"tools": tools, "output": items}


def check_event(event: dict[str, Any]) -> None:
    if event["type"] in OTHER_EVENTS:
        return
    item = event.get("item", {})
    if "mcp" in event["type"] or item.get("type", "").startswith("mcp_"):
        SDK_EVENTS.validate_python(event, strict=True)
        return
    if "response" in event and without_servers(event["response"]) != event["response"]:
        SDK_EVENTS.validate_python(event)
        event = event | {"response": without_servers(event["response"])}
    schema_name = _map_event_schemas()[event["type"]]
    assert find_violations(schema_name, event) == []


def check_stream(events: list[dict[str, Any]]) -> None:
    """Check each event, and that they tell the answer in the order of the standard."""
    for event in events:
        check_event(event)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert events[0]["type"] == "response.created"
    open_items: dict[int, Any] = {}
    done_items: dict[int, Any] = {}
    for event in events:
        if event["type"] == "response.output_item.added":
            open_items[event["output_index"]] = event["item"]
        elif event["type"] == "response.output_item.done":
            assert open_items.pop(event["output_index"])["id"] == event["item"]["id"]
            done_items[event["output_index"]] = event["item"]
        elif "output_index" in event:
            assert event["item_id"] == open_items[event["output_index"]]["id"]
    assert not open_items
    last_response = events[-1]["response"]
    assert [done_items[index] for index in sorted(done_items)] == last_response["output"]


def read_events(client: OpenAI, **body: Any) -> list[dict[str, Any]]:
    """Create a streamed response, and return its events as they were sent."""
    with client.responses.with_streaming_response.create(
        model=body.pop("model", MODEL), stream=True, **body
    ) as response:
        return parse_events("\n".join(response.iter_lines()))


def parse_events(text: str) -> list[dict[str, Any]]:
    """Return the events of a stream, whose names must be those in their data."""
    events = []
    frames = [frame for frame in text.split("\n\n") if frame.strip()]
    assert frames.pop().strip() == "data: [DONE]"
    for frame in frames:
        lines = frame.strip().split("\n")
        if lines[0].startswith(":"):
            continue
        event = json.loads(lines[1].removeprefix("data: "))
        assert lines[0] == f"event: {event['type']}"
        events.append(event)
    return events


@functools.cache
def load_document() -> dict[str, Any]:
    """Return the OpenAPI document of the standard."""
    document: dict[str, Any] = json.loads(DOCUMENT_PATH.read_text())
    return document


@functools.cache
def _build_validator(schema_name: str) -> Draft202012Validator:
    resource = Resource.from_contents(
        {"$schema": "https://json-schema.org/draft/2020-12/schema", **load_document()}
    )
    registry: Registry[Any] = Registry().with_resource(DOCUMENT_URI, resource)
    return Draft202012Validator(
        {"$ref": f"{DOCUMENT_URI}#/components/schemas/{schema_name}"}, registry=registry
    )


@functools.cache
def _map_event_schemas() -> dict[str, str]:
    return {
        schema["properties"]["type"]["enum"][0]: name
        for name, schema in load_document()["components"]["schemas"].items()
        if name.endswith("StreamingEvent")
    }
