"""Groups of knobs: frozen dataclasses that check every value when they are created."""

from dataclasses import Field, field, fields
from typing import Any, ClassVar

from compaction.core.rules import Rule


class PolicyError(ValueError):
    """A value that a policy cannot have.

    `field` is the name of the knob, for example `trigger.threshold`; `message` says what is wrong.
    """

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class KnobGroup:
    """The base of the groups. Every field of a group is a knob; `prefix` is the group's name."""

    __slots__ = ()
    prefix: ClassVar[str]

    def __post_init__(self) -> None:
        for knob_field in list_knobs(type(self)):
            complaint = get_rule(knob_field).find_complaint(getattr(self, knob_field.name))
            if complaint:
                raise PolicyError(f"{self.prefix}.{knob_field.name}", complaint)


def knob(rule: Rule, help: str) -> Any:
    """Declare a knob: a dataclass field with its rule and its help text for the reference.

    The return type is Any, as for `dataclasses.field`, so that the field keeps its own annotation.
    """
    return field(metadata={"rule": rule, "help": help})


def list_knobs(group: type[KnobGroup]) -> tuple[Field[Any], ...]:
    """Return the knobs of a group, in the order in which they are declared."""
    return fields(group)  # type: ignore[arg-type]  # every concrete group is a dataclass


def get_rule(knob_field: Field[Any]) -> Rule:
    """Return the rule that a knob's values follow."""
    rule: Rule = knob_field.metadata["rule"]
    return rule


def get_help(knob_field: Field[Any]) -> str:
    """Return the help text of a knob, in Markdown."""
    help_text: str = knob_field.metadata["help"]
    return help_text
