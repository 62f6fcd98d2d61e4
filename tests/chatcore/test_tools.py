"""The registry of built-in tools and the small tools, which never raise whatever a model writes."""

import importlib
import json
import pkgutil
import uuid
from collections.abc import Mapping
from datetime import date
from typing import Any

import pytest

from chatcore import tools
from chatcore.providers import base as provider_base
from chatcore.providers.base import ToolCall
from chatcore.tools import base
from chatcore.tools import registry as tool_registry
from chatcore.tools.arguments import parse_arguments

SESSION = uuid.uuid4()


def run(name: str, arguments: str) -> tool_registry.ToolOutcome:
    return tool_registry.run_tool(
        ToolCall(id="call-1", name=name, arguments=arguments), session_id=SESSION
    )


def calculate(expression: str) -> tool_registry.ToolOutcome:
    return run("calculate", f'{{"expression": "{expression}"}}')


@pytest.mark.django_db
def test_all_tools_are_defined_in_a_stable_order() -> None:
    assert [tool.name for tool in tool_registry.build_definitions()] == [
        "current_time",
        "calculate",
        "fetch_url",
        "search_history",
    ]


def test_every_tool_of_the_room_is_registered() -> None:
    modules = [
        importlib.import_module(f"{tools.__name__}.{module.name}")
        for module in pkgutil.iter_modules(tools.__path__)
    ]
    names = {module.TOOL.name for module in modules if hasattr(module, "TOOL")}
    assert names == tool_registry.BUILT_IN_TOOLS.keys()


def test_only_the_named_tools_are_defined_and_unknown_names_are_passed_over() -> None:
    assert [
        tool.name
        for tool in tool_registry.build_definitions(["search_history", "gone", "calculate"])
    ] == ["calculate", "search_history"]
    assert tool_registry.build_definitions([]) == []


@pytest.mark.parametrize(
    "tool",
    [tool.definition for tool in tool_registry.BUILT_IN_TOOLS.values()],
    ids=lambda tool: tool.name,
)
def test_every_definition_is_a_closed_object_schema_whose_required_arguments_are_described(
    tool: provider_base.Tool,
) -> None:
    assert tool.description
    schema: Mapping[str, Any] = tool.parameters
    assert schema["type"] == "object"
    assert schema["additionalProperties"] is False
    assert set(schema.get("required", [])) <= schema["properties"].keys()
    assert all(rule["description"] for rule in schema["properties"].values())


def test_an_unknown_tool_is_an_error_that_names_the_known_ones() -> None:
    outcome = run("launch_rocket", "{}")
    assert outcome.is_error
    assert "calculate" in outcome.content


@pytest.mark.parametrize(
    "arguments",
    [
        '{"expression": "1+1"',
        "not json",
        "[1]",
        '"1+1"',
        "null",
        "{}",
        '{"expression": 2}',
        '{"expression": null}',
        '{"expression": ""}',
        '{"expression": "1", "more": 1}',
        '{"expression": "' + "1+" * 300 + '1"}',
        "[" * 100_000,
        "{" * 5_000,
        "1" * 5_000,
        "\ud800",
    ],
)
def test_broken_or_wrong_arguments_are_an_error_the_model_can_read(arguments: str) -> None:
    outcome = run("calculate", arguments)
    assert outcome.is_error
    assert "argument" in outcome.content


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({}, "The argument 'query' is missing."),
        ({"query": ""}, "The argument 'query' is empty."),
        ({"query": "x" * 100_000}, "The argument 'query' has more than 1000 characters."),
        ({"query": 1}, "The argument 'query' must be of type string."),
        ({"query": "a", "limit": 3.0}, "The argument 'limit' must be of type integer."),
        ({"query": "a", "limit": 99}, "The argument 'limit' must be between 1 and 20."),
        ({"query": "a", "more": "x" * 100_000}, "Unknown argument 'more'. Known: query, limit."),
    ],
)
def test_an_error_names_the_argument_and_the_rule(arguments: dict[str, Any], sentence: str) -> None:
    assert run("search_history", json.dumps(arguments)).content == sentence


def test_a_rule_for_a_nested_value_names_its_place() -> None:
    schema = {
        "type": "object",
        "properties": {"files": {"type": "array", "items": {"enum": ["a", "b"]}}},
    }
    with pytest.raises(base.ToolError, match=r"'files\[1\]' must be one of a, b\."):
        parse_arguments('{"files": ["a", "c"]}', schema)


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert not run("current_time", "").is_error


def test_a_boolean_is_not_a_whole_number() -> None:
    assert run("search_history", '{"query": "a", "limit": true}').is_error
    assert run("search_history", '{"query": "a", "limit": 1000}').is_error


def test_a_tool_that_breaks_is_an_error_without_its_inner_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(arguments: object, session_id: object) -> str:
        raise RuntimeError("password=hunter2")

    tool = base.BuiltInTool(
        name="broken",
        description="Breaks.",
        parameters={"type": "object", "properties": {}},
        run=broken,
    )
    monkeypatch.setitem(tool_registry.BUILT_IN_TOOLS, "broken", tool)
    outcome = run("broken", "{}")
    assert outcome.is_error
    assert "hunter2" not in outcome.content


def test_the_time_is_told_in_the_asked_zone_with_the_weekday(time_machine: object) -> None:
    time_machine.move_to("2026-07-01T12:00:00Z", tick=False)  # type: ignore[attr-defined]
    assert run("current_time", "{}").content == "2026-07-01T12:00:00+00:00 UTC, Wednesday"
    assert (
        run("current_time", '{"timezone": "Asia/Tokyo"}').content
        == "2026-07-01T21:00:00+09:00 Asia/Tokyo, Wednesday"
    )


@pytest.mark.parametrize(
    "zone", ["Mars/Olympus", "Europe", "../../etc/passwd", "/etc/passwd", "a\\u0000b"]
)
def test_what_is_not_a_time_zone_is_an_error(zone: str) -> None:
    outcome = run("current_time", f'{{"timezone": "{zone}"}}')
    assert outcome.is_error
    assert "IANA" in outcome.content


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("2 + 3 * 4", "14"),
        ("2 ** 64", "18446744073709551616"),
        ("0.1 + 0.2", "0.3"),
        ("(1 + 2) / 4", "0.75"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("sqrt(2) ** 2", "2"),
        ("round(pi, 4)", "3.1416"),
        ("max(1, 2, 3) - abs(-5)", "-2"),
        ("factorial(20)", "2432902008176640000"),
        (" 1 ", "1"),
    ],
)
def test_arithmetic_comes_out_right(expression: str, value: str) -> None:
    assert calculate(expression) == tool_registry.ToolOutcome(content=value)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9",
        "10**10**10 - 1",
        "2**-10**9**9",
        "factorial(10**9)",
        "factorial(factorial(20))",
        "round(5, -10**9)",
        "1e308 * 10",
        "(10**3000) * (10**3000)",
        "(" * 240 + "1" + ")" * 240,
        "exp(10**6)",
        "10**400 / 3",
        "0.0 ** -1",
        "1 << 10**9",
    ],
)
def test_what_would_take_for_ever_or_overflow_is_refused_at_once(expression: str) -> None:
    assert calculate(expression).is_error


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "().__class__",
        "open('x')",
        "[1] * 9",
        "x",
        "lambda: 1",
        "'a' * 9",
        "1 if 1 else 2",
        "True",
        "sqrt",
        "(-8) ** 0.5",
        "1; 2",
        "sqrt(x=1)",
        "abs(*[1])",
        "1 +",
        "",
        "min()",
        "sqrt(-1)",
        "1/0",
        "2 ^ 3",
        "f'{1}'",
        "1j",
        "not 1",
        "1 < 2",
    ],
)
def test_nothing_but_real_arithmetic_is_evaluated(expression: str) -> None:
    assert calculate(expression).is_error


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ({"city": "Köln", "when": date(2026, 3, 4)}, '{"city": "Köln", "when": "2026-03-04"}'),
        ([1, None], "[1, null]"),
        (b"caf\xc3\xa9 \xff", "café \ufffd"),
        (4.5, "4.5"),
        (None, ""),
    ],
)
def test_whatever_a_tool_returns_becomes_text(
    monkeypatch: pytest.MonkeyPatch, value: object, text: str
) -> None:
    tool = base.BuiltInTool(
        name="probe", description="", parameters={"type": "object"}, run=lambda *_: value
    )
    monkeypatch.setitem(tool_registry.BUILT_IN_TOOLS, "probe", tool)
    assert run("probe", "{}") == tool_registry.ToolOutcome(content=text)
