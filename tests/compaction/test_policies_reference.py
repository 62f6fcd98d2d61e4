"""The reference of all knobs, docs/policies.md."""

from dataclasses import fields
from pathlib import Path

import pytest

from compaction.core.knobs import KnobGroup, get_help, list_knobs
from compaction.core.policy import Policy
from compaction.core.presets import ONECLAW
from compaction.policies.reference import render_reference

PAGE = Path(__file__).resolve().parents[2] / "docs/policies.md"
GROUPS = [
    group
    for group in (getattr(ONECLAW, field.name) for field in fields(Policy))
    if isinstance(group, KnobGroup)
]


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group.prefix)
def test_every_knob_has_a_help_text_that_is_a_sentence(group: KnobGroup) -> None:
    assert type(group).__doc__
    for knob in list_knobs(type(group)):
        assert get_help(knob).endswith(".")


def test_every_group_has_the_name_of_its_field_in_a_policy() -> None:
    assert [group.prefix for group in GROUPS] == [
        field.name for field in fields(Policy) if field.name != "stages"
    ]


def test_the_page_in_the_docs_is_the_generated_one() -> None:
    assert PAGE.read_text() == render_reference(), (
        "run `chatcore policies --reference > docs/policies.md`"
    )
