"""Chats with models of every family of servers, in every situation."""

from collections.abc import Callable
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.sessions import verification
from compaction.core.presets import PRESETS
from tests.support.compaction_sessions import list_chat_calls
from tests.support.family_page import MARK, render_tables
from tests.support.family_stage import FACT, MOVED, SITUATIONS, Stage, play, play_long_chat
from tests.support.scripted_model import ScriptedModel
from tests.support.strict_servers import FAMILIES, Family

pytestmark = pytest.mark.django_db(transaction=True)

PAGE = Path(settings.BASE_DIR) / "docs" / "providers.md"
NewStage = Callable[[Family], Stage]


@pytest.fixture
def new_stage(scripted: ScriptedModel, user: User, api: APIClient) -> NewStage:
    return lambda family: Stage(scripted, user, api, family)


@pytest.mark.parametrize("family", FAMILIES, ids=[family.name for family in FAMILIES])
def test_a_chat_goes_on_with_each_family(family: Family, new_stage: NewStage) -> None:
    play(new_stage(family), MOVED)


@pytest.mark.parametrize("situation", SITUATIONS)
def test_a_chat_goes_on_in_each_situation(situation: str, new_stage: NewStage) -> None:
    """With a server that is known by no name and refuses what any refuses."""
    play(new_stage(FAMILIES[0]), situation)


@pytest.mark.parametrize(
    "policy",
    [pytest.param(name, marks=() if name == "chatcore" else pytest.mark.slow) for name in PRESETS],
)
def test_a_long_chat_wanders_through_eight_families_and_back(
    policy: str, new_stage: NewStage
) -> None:
    families = [family for family in FAMILIES if family.knows_tools][::3][:8]
    stage = new_stage(families[0])
    Session.objects.filter(pk=stage.session.pk).update(policy=policy)
    play_long_chat(stage, families, turns=17)
    stage.ask_well("Which is the code word?")
    stage.check()
    stage.session.refresh_from_db()
    assert stage.session.context_version > 0
    assert list(verification.find_violations(stage.session)) == []
    assert FACT in str(list_chat_calls(stage.scripted)[-1].json)


@pytest.mark.slow
def test_every_family_in_every_situation(
    new_stage: NewStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes of it is written below the mark of the page about providers."""
    monkeypatch.setitem(settings.CHATCORE, "TURNS_PER_MINUTE", 100_000)
    failures: dict[tuple[str, str], str] = {}
    for family in FAMILIES:
        for situation in SITUATIONS:
            try:
                play(new_stage(family), situation)
            except AssertionError as error:
                failures[family.name, situation] = str(error)
    head = PAGE.read_text().partition(MARK)[0]
    PAGE.write_text(head + render_tables(failures.keys()))
    assert not failures


def test_the_page_has_the_families_and_situations_of_the_test() -> None:
    assert PAGE.read_text().endswith(render_tables(())), "run `./bin/test --slow`"
