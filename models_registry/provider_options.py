"""What a provider's server needs beside the usual: each option by its name, with its type."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any, Literal, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

JsonObject = dict[str, object]


class DialectOptions(TypedDict, total=False):
    """The fields of `chatcore.providers.dialects.Dialect`, which says what each does."""

    reasoning: Literal["own", "all", "none"]
    reasoning_field: str
    has_reasoned_texts: bool
    has_tagged_thoughts: bool
    needs_thoughts: bool
    has_empty_texts: bool
    has_named_call_ids: bool
    needs_signatures: bool
    keeps_signatures: bool
    max_calls: int
    has_simple_schemas: bool
    max_images: int
    image_types: list[str]
    begins_thinking: bool


class ProviderOptions(TypedDict, total=False):
    """All options of a provider; docs/providers.md and docs/developers.md tell of them."""

    # What is sent beside the messages.
    headers: dict[str, str]
    query: JsonObject
    body: JsonObject
    tool_body: JsonObject
    params: list[str]
    # Which client of the SDK, and what those of clouds need.
    client: str
    region: str
    project: str
    api_version: str
    # What the server takes; refusals teach these too.
    dialect: DialectOptions
    without: list[str]
    without_values: list[str]
    without_tools: list[str]
    output_limit: int
    thought_room: int
    thoughts_exceed: int
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"]
    system_role: bool
    # What small models need.
    server_tools: bool
    written_calls: bool
    control_tokens: bool
    tells_reading: bool
    # Summaries and titles.
    titles: bool
    summary_body: JsonObject
    summary_effort: str
    summary_chunk_tokens: int
    summary_temperature: bool
    summary_in_talk: bool
    summary_without_tools: Literal["", "unless told", "always"]
    summary_names_lines: bool
    summary_headings: Literal["full", "bare"]
    summary_seconds: float
    compaction_places: int


_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def find_problems(options: object) -> list[str]:
    """Say in a sentence each what is wrong with options; nothing if they can be used."""
    if not isinstance(options, dict):
        return ['An object, as {"summary_effort": "low"}.']
    problems = list(_check_names(options, ProviderOptions, ""))
    places = options.get("compaction_places", 1)
    if not problems and places < 1:
        problems.append("compaction_places is a whole number from 1 on; leave it out for no limit.")
    return problems


def _check_names(options: Mapping[str, object], known: object, prefix: str) -> Iterator[str]:
    types = get_type_hints(known)
    for name, value in options.items():
        if name not in types:
            close = get_close_matches(name, types, n=1)
            yield f"{prefix}{name} is no option{f'; {close[0]} is' if close else ''}."
        elif is_typeddict(types[name]) and isinstance(value, dict):
            yield from _check_names(value, types[name], f"{prefix}{name}.")
        elif not _is_of_type(value, types[name]):
            yield f"{prefix}{name} is {_describe_type(types[name])}."


def _is_of_type(value: object, expected: Any) -> bool:
    arguments = get_args(expected)
    if get_origin(expected) is Literal:
        return value in arguments
    if get_origin(expected) is list:
        return isinstance(value, list) and all(_is_of_type(each, arguments[0]) for each in value)
    if get_origin(expected) is dict:
        return isinstance(value, dict) and all(
            _is_of_type(each, arguments[1]) for each in value.values()
        )
    if expected in (int, float) and isinstance(value, bool):
        return False
    return not is_typeddict(expected) and isinstance(
        value, (int, float) if expected is float else expected
    )


def _describe_type(expected: Any) -> str:
    if get_origin(expected) is Literal:
        return " or ".join(get_args(expected))
    if get_origin(expected) is list:
        return "a list of texts"
    return _WORDS.get(expected, "an object")
