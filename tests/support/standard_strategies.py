"""Bodies that the published standard allows, and bodies that are nearly right, for Hypothesis."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.support.open_responses import load_document

Schema = Mapping[str, Any]
Values = Mapping[str, SearchStrategy[Any]]

MAX_LENGTH = 40  # of a text that may be longer
MAX_ITEMS = 4
JSON_VALUES: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


def build_values(schema_name: str, known_values: Values) -> SearchStrategy[Any]:
    """Build values of a schema of the standard.

    `known_values` are tried for the properties of these names, wherever they stand: a random id
    names nothing.
    """
    return _Builder(known_values).build(load_document()["components"]["schemas"][schema_name])


def spoil(draw: Any, value: Any) -> Any:
    """Return the value with another one at its place, or somewhere inside it."""
    if isinstance(value, dict) and value and draw(st.booleans()):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: spoil(draw, value[key])}
    if isinstance(value, list) and value and draw(st.booleans()):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], spoil(draw, value[index]), *value[index + 1 :]]
    return draw(JSON_VALUES)


class _Builder:
    """Builds strategies for those keywords of JSON Schema that the standard uses."""

    def __init__(self, known_values: Values) -> None:
        self._known_values = known_values

    def build(self, schema: Schema) -> SearchStrategy[Any]:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            return self.build(load_document()["components"]["schemas"][name])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                return st.one_of([self.build(part) for part in schema[keyword]])
        if "allOf" in schema:
            return self.build(schema["allOf"][0])  # the others describe it
        return self._build_type(schema)

    def _build_type(self, schema: Schema) -> SearchStrategy[Any]:
        match schema.get("type"):
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "integer":
                return st.integers(schema.get("minimum", 0), schema.get("maximum", 100_000))
            case "number":
                return st.floats(-1, 3, allow_nan=False)
            case "string":
                return _build_text(schema)
            case "array":
                return st.lists(self.build(schema["items"]), max_size=MAX_ITEMS)
            case "object":
                return self._build_object(schema)
        return JSON_VALUES

    def _build_object(self, schema: Schema) -> SearchStrategy[dict[str, Any]]:
        properties = {name: self._build_member(name, part) for name, part in _list_members(schema)}
        if not properties:
            return st.dictionaries(st.text(max_size=8), st.text(max_size=20), max_size=3)
        required = set(schema.get("required", ()))

        @st.composite
        def build(draw: Any) -> dict[str, Any]:
            optional = sorted(properties.keys() - required)
            others = draw(st.lists(st.sampled_from(optional), max_size=4)) if optional else []
            return {name: draw(properties[name]) for name in sorted({*required, *others})}

        return build()

    def _build_member(self, name: str, schema: Schema) -> SearchStrategy[Any]:
        value = self.build(schema)
        known_value = self._known_values.get(name)
        return st.one_of([known_value] * 6 + [value]) if known_value is not None else value


def _list_members(schema: Schema) -> list[tuple[str, Schema]]:
    return list(schema.get("properties", {}).items())


def _build_text(schema: Schema) -> SearchStrategy[str]:
    limit = min(schema.get("maxLength", MAX_LENGTH), MAX_LENGTH)
    if "pattern" in schema:
        pattern: str = schema["pattern"]
        return st.from_regex(pattern, fullmatch=True).map(lambda text: text[:limit])
    return st.text(min_size=schema.get("minLength", 0), max_size=limit)
