"""Bring the JSON schemas of tools into a form that servers take.

A schema that one MCP server sends is refused by OpenAI and Anthropic if its top level has a choice,
and by Gemini and Kimi for keywords that they do not know; the whole request is refused with it. A
simpler schema lets a model make a mistake that the tool itself reports.
"""

from collections.abc import Iterable, Mapping

from chatcore.providers.base import Tool

_CHOICES = ("anyOf", "oneOf", "allOf")
# What no server takes at the top level, and what says nothing to a model.
_TOP_KEYWORDS = frozenset(
    {*_CHOICES, "$ref", "$schema", "$id", "enum", "const", "not", "if", "then", "else"}
)
# What Gemini takes, and so does everyone else.
_SIMPLE_KEYWORDS = frozenset(
    {
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "minimum",
        "maximum",
        "minItems",
        "maxItems",
        "minLength",
        "maxLength",
        "pattern",
    }
)
_MAX_DEPTH = 12

Schema = dict[str, object]


def build_schema(tool: Tool, *, is_simple: bool) -> Schema:
    """Return a tool's schema as it is sent; one that is to be held to strictly stays as it is."""
    if is_simple:
        return simplify_schema(tool.parameters)
    return dict(tool.parameters) if tool.strict else flatten_schema(tool.parameters)


def flatten_schema(schema: Mapping[str, object]) -> Schema:
    """Return the schema with an object at its top level, and no choice there."""
    if schema.get("type") == "object" and not _TOP_KEYWORDS & schema.keys():
        return dict(schema) if "properties" in schema else {**schema, "properties": {}}
    properties: Schema = {}
    required = _merge_object(schema, schema, properties, depth=0)
    flat_schema = {name: value for name, value in schema.items() if name not in _TOP_KEYWORDS}
    flat_schema |= {"type": "object", "properties": properties}
    flat_schema.pop("required", None)
    if required:
        flat_schema["required"] = [name for name in properties if name in required]
    return flat_schema


def simplify_schema(schema: Mapping[str, object]) -> Schema:
    """Return the schema in the few keywords that every server takes, without references."""
    flat_schema = flatten_schema(schema)
    return _simplify(flat_schema, flat_schema, depth=0)


def _merge_object(
    part: Mapping[str, object], root: Mapping[str, object], properties: Schema, *, depth: int
) -> set[str]:
    """Add the properties of an object and of its choices; return the names that all require."""
    part = _resolve(part, root)
    if depth > _MAX_DEPTH:
        return set()
    own_properties = part.get("properties")
    for name, value in own_properties.items() if isinstance(own_properties, Mapping) else ():
        properties[name] = _join_properties(properties.get(name), value)
    required = set(_list_texts(part.get("required")))
    for keyword in _CHOICES:
        options = [each for each in _list(part.get(keyword)) if isinstance(each, Mapping)]
        names = [_merge_object(each, root, properties, depth=depth + 1) for each in options]
        if names:
            required |= set.union(*names) if keyword == "allOf" else set.intersection(*names)
    return required


def _join_properties(first: object, second: object) -> object:
    """Return a property that two options describe."""
    if first is None or first == second:
        return second
    options = first["anyOf"] if isinstance(first, Mapping) and list(first) == ["anyOf"] else [first]
    return {"anyOf": options if second in options else [*options, second]}


def _simplify(value: object, root: Mapping[str, object], *, depth: int) -> Schema:
    if not isinstance(value, Mapping) or depth > _MAX_DEPTH:
        return {"type": "string"}  # `true`, which allows anything, or a schema without an end
    source = {**_resolve(value, root)}
    if options := _list(source.get("allOf")):
        del source["allOf"]
        for option in options:
            source = {**_resolve(option, root), **source} if isinstance(option, Mapping) else source
    if "oneOf" in source:
        source.setdefault("anyOf", source["oneOf"])
    if "const" in source:
        source["enum"] = [source["const"]]
    for bound in ("minimum", "maximum"):
        exclusive = source.get(f"exclusive{bound.capitalize()}")
        if isinstance(exclusive, int | float) and not isinstance(exclusive, bool):
            source.setdefault(bound, exclusive)
    schema = {name: value for name, value in source.items() if name in _SIMPLE_KEYWORDS}
    schema["type"] = _choose_type(source)
    _simplify_parts(schema, root, depth=depth)
    return schema


def _simplify_parts(schema: Schema, root: Mapping[str, object], *, depth: int) -> None:
    """Simplify what stands inside a schema, and drop what its type does not have."""
    options = [each for each in _list(schema.pop("anyOf", None)) if each != {"type": "null"}]
    if options and schema["type"] != "object":
        simple_options = [_simplify(each, root, depth=depth + 1) for each in options]
        if len(simple_options) == 1:
            if "description" in schema:
                simple_options[0]["description"] = schema["description"]
            schema |= simple_options[0]
        else:
            schema["anyOf"] = simple_options
            del schema["type"]
    kind = schema.get("type")
    enum = [value for value in _list(schema.pop("enum", None)) if isinstance(value, str)]
    if enum and kind == "string":
        schema["enum"] = enum
    properties = schema.pop("properties", None)
    required = _list_texts(schema.pop("required", None))
    if kind == "object":
        members = properties if isinstance(properties, Mapping) else {}
        schema["properties"] = {
            name: _simplify(each, root, depth=depth + 1) for name, each in members.items()
        }
        if names := [name for name in required if name in members]:
            schema["required"] = names
    items = schema.pop("items", None)
    if kind == "array":
        items = items[0] if isinstance(items, list) and items else items
        schema["items"] = _simplify(items, root, depth=depth + 1)


def _choose_type(source: Mapping[str, object]) -> str:
    """Return the one type of a schema: the first that is not null, or what its keywords tell."""
    types = [each for each in _list(source.get("type")) if each != "null"]
    if isinstance(source.get("type"), str):
        types = [source["type"]]
    if types and isinstance(types[0], str):
        return types[0]
    if "properties" in source:
        return "object"
    if "items" in source:
        return "array"
    values = _list(source.get("enum"))
    if values and all(isinstance(value, bool) for value in values):
        return "boolean"
    if values and all(isinstance(value, int | float) for value in values):
        return "number"
    return "string"


def _resolve(part: Mapping[str, object], root: Mapping[str, object]) -> Mapping[str, object]:
    """Return what a reference means, with what stands beside it; only definitions are known."""
    for _ in range(_MAX_DEPTH):
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return part
        rest = {name: value for name, value in part.items() if name != "$ref"}
        part = {**_find_definition(reference, root), **rest}
    return {}


def _find_definition(reference: str, root: Mapping[str, object]) -> Mapping[str, object]:
    steps = [step.replace("~1", "/").replace("~0", "~") for step in reference.split("/")[1:]]
    found: object = root if reference.startswith("#") else None
    for step in steps:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Mapping) and steps else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _list_texts(value: object) -> Iterable[str]:
    return [each for each in _list(value) if isinstance(each, str)]
