"""The reference of all knobs: docs/policies.md and the READMEs of the systems."""

from pathlib import Path

import pytest

from compaction.core.knobs import KnobGroup, get_help, list_knobs
from compaction.core.presets import ONECLAW
from compaction.policies.reference import render_reference, render_system

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/policies.md"
READMES = sorted(ROOT.glob("compaction/systems/*/README.md"))


@pytest.mark.parametrize("group", [*ONECLAW.list_groups()], ids=lambda group: type(group).__name__)
def test_every_knob_has_a_help_text_that_is_a_sentence(group: KnobGroup) -> None:
    assert type(group).__doc__
    for knob in list_knobs(type(group)):
        assert get_help(knob).endswith(".")


def test_no_two_groups_declare_the_same_knob() -> None:
    names = [
        f"{group.prefix}.{knob.name}"
        for group in ONECLAW.list_groups()
        for knob in list_knobs(type(group))
    ]
    assert len(names) == len(set(names)) > 100


def read_generated(path: Path) -> str:
    mark = "<!-- Generated"
    return mark + path.read_text().partition(mark)[2]


def test_the_page_in_the_docs_has_the_settings_of_the_core() -> None:
    assert read_generated(PAGE) == render_reference(), (
        "put what `chatcore policies --reference` prints below the mark of docs/policies.md"
    )


@pytest.mark.parametrize("path", READMES, ids=lambda path: path.parent.name)
def test_the_readme_of_a_system_has_its_settings(path: Path) -> None:
    name = path.parent.name
    assert read_generated(path) == render_system(name), (
        f"put what `chatcore policies --reference {name}` prints below the mark of its README"
    )


def test_every_group_of_a_system_is_in_its_readme() -> None:
    page = "".join(path.read_text() for path in [PAGE, *READMES])
    for group in ONECLAW.list_groups():
        for knob in list_knobs(type(group)):
            assert f"`{knob.name}`" in page or f"`{group.prefix}.{knob.name}`" in page
