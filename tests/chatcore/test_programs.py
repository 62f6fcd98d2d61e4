"""Random programs of acts, races and accidents: nothing is lost, changed, split or left open."""

import os

import pytest
from django.conf import LazySettings
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.support.program_checks import CheckedModel
from tests.support.programs import Conversations

# `python -m measure.programs` runs many more.
PROGRAMS = settings(
    max_examples=int(os.environ.get("CHATCORE_PROGRAMS", "2")),
    stateful_step_count=int(os.environ.get("CHATCORE_PROGRAM_STEPS", "30")),
    phases=[Phase.generate],  # a program that fails is short enough to read as it is
)


@pytest.mark.heavy
@pytest.mark.lasting
@pytest.mark.django_db(transaction=True)
def test_every_program_keeps_every_promise(warm_sdks: None, settings: LazySettings) -> None:
    unlimited = {"TURNS_PER_MINUTE": 1_000_000, "COMPACTIONS_PER_MINUTE": 1_000_000}
    settings.CHATCORE = {**settings.CHATCORE, **unlimited}
    with CheckedModel() as scripted:
        Conversations.scripted = scripted
        run_state_machine_as_test(Conversations, settings=PROGRAMS)
