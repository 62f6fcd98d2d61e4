"""Bodies of requests as pydantic models, and what is said of the first field that is wrong."""

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from chatcore.base.rest.problems import InvalidFieldError

# By the type that pydantic gives an error; for others its own words are good enough.
TEXTS = {
    "missing": "This is missing.",
    "string_type": "A text.",
    "string_too_short": "A text.",
    "string_too_long": "A text of at most {max_length} characters.",
    "bool_type": "Either true or false.",
    "int_type": "A whole number.",
    "float_type": "A number.",
    "greater_than_equal": "A number from {ge}.",
    "less_than": "A number below {lt}.",
    "list_type": "A list.",
    "too_short": "A list with at least {min_length}.",
    "too_long": "At most {max_length}.",
    "dict_type": "An object.",
    "model_type": "An object.",
    "model_attributes_type": "An object.",
    "literal_error": "One of {expected}.",
    "union_tag_invalid": "One of {expected_tags}, not {tag:.50}.",
    "union_tag_not_found": "This is missing.",
    "extra_forbidden": "This is not supported here.",
    "value_error": "{error}",
}
MAX_ERRORS = 50  # that are looked at; a request may have 10,000 wrong messages

Path = tuple[str | int, ...]
FilledText = Annotated[str, Field(min_length=1)]


class Body(BaseModel):
    """A body, or a part of one. What it does not know is left out unless a class forbids it."""

    model_config = ConfigDict(strict=True)

    @classmethod
    def parse(cls, value: object, path: str = "") -> Self:
        """Return the body of a request, or of a part of it at a path; null is as good as nothing.

        Raises the 400 problem for the first wrong field.
        """
        if not isinstance(value, Mapping):
            raise InvalidFieldError(path or "body", "A JSON object.")
        members = {name: member for name, member in value.items() if member is not None}
        try:
            return cls.model_validate(members)
        except ValidationError as error:
            raise _build_problem(error, members, path) from None


def refuse(detail: str) -> AfterValidator:
    """Refuse every value of a member that nothing can be done with here."""

    def check(value: object) -> None:
        if value:
            raise ValueError(detail)

    return AfterValidator(check)


def _build_problem(error: ValidationError, body: object, prefix: str) -> InvalidFieldError:
    """Build the problem of the first wrong field.

    A field may be of one of several kinds; then this is about the kind that came closest.
    """
    errors = error.errors(include_url=False)[:MAX_ERRORS]
    paths = [_find_path(each, body) for each in errors]
    path = max((path for path in paths if path[: len(paths[0])] == paths[0]), key=len)
    found = zip(errors, paths, strict=True)
    first, *others = dict.fromkeys(_describe(each) for each, other in found if other == path)
    detail = ", or ".join([first, *(text[0].lower() + text[1:] for text in others)])
    names = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in path]
    return InvalidFieldError(f"{prefix}{''.join(names)}".removeprefix("."), f"{detail}.")


def _find_path(error: ErrorDetails, body: object) -> Path:
    """Return the path of a wrong value; pydantic's own also names the kinds that a field may be."""
    path = _skip_kinds(error["loc"], body, error) or error["loc"]
    if error["type"].startswith("union_tag") and isinstance(error["input"], Mapping):
        return (*path, error["ctx"]["discriminator"].strip("'"))
    return path


def _skip_kinds(loc: tuple[Any, ...], value: Any, error: ErrorDetails) -> Path | None:
    """Return the part of a path that leads to the wrong value, or to where one is missing."""
    is_missing = error["type"] == "missing"
    if not loc:
        return () if value is error["input"] and not is_missing else None
    key, rest = loc[0], loc[1:]
    is_object = isinstance(value, Mapping)
    if is_missing and not rest and value is error["input"]:
        return loc
    if (is_object and key in value) or (isinstance(value, list) and isinstance(key, int)):
        path = _skip_kinds(rest, value[key], error)
        if path is not None:
            return (key, *path)
    return _skip_kinds(rest, value, error)


def _describe(error: ErrorDetails) -> str:
    template = TEXTS.get(error["type"])
    text = template.format(**error.get("ctx", {})) if template else error["msg"]
    is_list = error["type"] in ("literal_error", "union_tag_invalid")
    return (text.replace("'", "") if is_list else text).removesuffix(".")
