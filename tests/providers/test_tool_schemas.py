"""Schemas of tools as they are sent, and tools that a server refuses all the same."""

from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chatcore.providers.base import Tool
from chatcore.providers.tool_schemas import flatten_schema, simplify_schema
from tests.support.provider_calls import (
    build_connection,
    catch_error,
    collect_parts,
    get_end,
    join_text,
    make_request,
)
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

TEXT: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "integer"}
# Gemini's refusals name each of these.
FOREIGN_KEYWORDS = {"$ref", "$schema", "$defs", "const", "exclusiveMinimum", "oneOf", "allOf"}
FOREIGN_KEYWORDS |= {"additionalProperties", "propertyNames", "default", "not", "format"}


def test_choices_at_the_top_become_one_object() -> None:
    by_id = {"type": "object", "properties": {"id": NUMBER}, "required": ["id"]}
    by_name = {"properties": {"name": TEXT, "id": TEXT}, "required": ["id"]}
    for keyword, required in (("anyOf", ["id"]), ("oneOf", ["id"]), ("allOf", ["id"])):
        schema = flatten_schema({keyword: [by_id, by_name], "description": "Find it."})
        assert schema == {
            "type": "object",
            "description": "Find it.",
            "properties": {"id": {"anyOf": [NUMBER, TEXT]}, "name": TEXT},
            "required": required,
        }


def test_what_all_options_require_is_required_and_what_each_part_requires_too() -> None:
    first = {"properties": {"a": TEXT, "b": TEXT}, "required": ["a", "b"]}
    second = {"properties": {"b": TEXT, "c": TEXT}, "required": ["b", "c"]}
    assert flatten_schema({"anyOf": [first, second]})["required"] == ["b"]
    assert flatten_schema({"allOf": [first, second]})["required"] == ["a", "b", "c"]


def test_a_reference_at_the_top_is_followed() -> None:
    definition = {"type": "object", "properties": {"id": NUMBER}, "required": ["id"]}
    schema = flatten_schema({"$ref": "#/$defs/query", "$defs": {"query": definition}})
    assert schema["properties"] == {"id": NUMBER}
    assert schema["required"] == ["id"]
    assert "$ref" not in schema


def test_a_usual_schema_stays_as_it_is() -> None:
    schema = {"type": "object", "properties": {"at": {"anyOf": [TEXT, NUMBER]}}}
    assert flatten_schema(schema) == schema


@pytest.mark.parametrize(
    ("value", "simple_value"),
    [
        ({"const": "now"}, {"type": "string", "enum": ["now"]}),
        ({"type": ["string", "null"]}, TEXT),
        ({"type": "integer", "exclusiveMinimum": 3}, NUMBER | {"minimum": 3}),
        ({"type": "array"}, {"type": "array", "items": TEXT}),
        ({"$ref": "#/$defs/day", "description": "A day."}, TEXT | {"description": "A day."}),
        ({"anyOf": [TEXT, {"type": "null"}]}, TEXT),
        ({"oneOf": [TEXT, NUMBER]}, {"anyOf": [TEXT, NUMBER]}),
        ({"type": "integer", "enum": [1, 2]}, NUMBER),
        (True, TEXT),
    ],
)
def test_a_simple_schema_says_about_the_same(value: Any, simple_value: Any) -> None:
    definitions = {"day": {"type": "string", "format": "date"}}
    schema = {"type": "object", "properties": {"at": value}, "$defs": definitions}
    assert simplify_schema(schema) == {"type": "object", "properties": {"at": simple_value}}


def test_a_schema_without_an_end_has_one() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}
    simple_schema = simplify_schema({"$ref": "#/$defs/node", "$defs": {"node": node}})
    assert len(str(simple_schema)) < 2000


KEYWORDS = sorted(FOREIGN_KEYWORDS | {"type", "items", "anyOf", "enum", "properties", "required"})
VALUES = st.recursive(
    st.sampled_from([True, None, 1, "string", "object", "array", "#/$defs/x", ["string", "null"]]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=5)
    ),
    max_leaves=25,
)


@settings(max_examples=150, deadline=None)
@given(schema=st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=6))
def test_any_schema_becomes_a_sound_one(schema: dict[str, Any]) -> None:
    flat_schema, simple_schema = flatten_schema(schema), simplify_schema(schema)
    for each in (flat_schema, simple_schema):
        assert each["type"] == "object"
        assert not {"anyOf", "oneOf", "allOf", "enum", "not", "$ref"} & each.keys()
    jsonschema.Draft202012Validator.check_schema(simple_schema)
    assert list(find_faults(simple_schema)) == []


def find_faults(schema: dict[str, Any]) -> Iterator[str]:
    """Yield what Gemini or Kimi would refuse."""
    yield from FOREIGN_KEYWORDS & schema.keys()
    if "anyOf" not in schema and not isinstance(schema.get("type"), str):
        yield "no type"
    if set(schema.get("required", ())) - schema.get("properties", {}).keys():
        yield "requires what is not there"
    parts = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    for part in [*parts, schema["items"]] if "items" in schema else parts:
        yield from find_faults(part)


@pytest.mark.parametrize("protocol", ["openai", "anthropic"])
@pytest.mark.parametrize("naming", ["Invalid schema for function '{name}'", "tools.{index}.custom"])
async def test_a_tool_that_is_refused_is_left_out_and_named(
    naming: str, protocol: str, scripted: ScriptedModel
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        for index, tool in enumerate(body.get("tools", ())):
            name = tool.get("name") or tool["function"]["name"]
            if name.startswith("bad"):
                refusal = naming.format(name=name, index=index)
                return Reply(status=400, text=f"{refusal}: the schema is invalid.")
        return Reply(text="Fine.")

    scripted.default = answer
    names = ("good", "bad_one", "bad_two")
    tools = [Tool(name=name, description="", parameters={"type": "object"}) for name in names]
    connection = build_connection(scripted, protocol)
    refused = []
    for _ in range(2):
        parts = await collect_parts(connection, make_request(tools=tools))
        assert join_text(parts) == "Fine."
        refused.append(get_end(parts).refused_tools)
    assert refused == [("bad_one", "bad_two"), ()]
    assert len(scripted.requests) == 5


async def test_a_simpler_schema_is_tried_before_a_tool_is_left_out(
    scripted: ScriptedModel,
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        refusal = "Invalid JSON payload received. Unknown name \"const\" at 'tools[0].function'"
        return (
            Reply(status=400, text=refusal)
            if '"const"' in str(body).replace("'", '"')
            else Reply(text="Fine.")
        )

    scripted.default = answer
    schema = {"type": "object", "properties": {"at": {"const": "now"}}}
    tool = Tool(name="look", description="", parameters=schema)
    parts = await collect_parts(build_connection(scripted, "openai"), make_request(tools=[tool]))
    assert get_end(parts).refused_tools == ()
    sent_tool = scripted.requests[-1].json["tools"][0]["function"]
    assert sent_tool["parameters"]["properties"] == {"at": {"type": "string", "enum": ["now"]}}


async def test_a_refusal_that_names_no_tool_is_told(scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=400, text="One of your tools has a bad schema.")
    tool = Tool(name="look", description="", parameters={"type": "object"})
    error = await catch_error(build_connection(scripted, "openai"), make_request(tools=[tool]))
    assert "bad schema" in error.detail
