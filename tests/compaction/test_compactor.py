"""The class that CHATCORE["COMPACTOR"] names."""

import inspect
from typing import TYPE_CHECKING

import pytest

from chatcore.context import compactor as chatcore_compactor
from compaction.compactor import Compactor
from compaction.core.presets import PRESETS

if TYPE_CHECKING:
    # mypy checks this assignment: the class has all methods of the protocol, with fitting types.
    _compactor: chatcore_compactor.Compactor = Compactor()


def test_it_has_the_methods_and_parameters_of_the_protocol() -> None:
    protocol_methods = {
        name: method
        for name, method in inspect.getmembers(chatcore_compactor.Compactor, inspect.isfunction)
        if not name.startswith("_")
    }
    assert protocol_methods
    for name, method in protocol_methods.items():
        parameters = inspect.signature(getattr(Compactor, name)).parameters
        expected_parameters = inspect.signature(method).parameters
        assert [(p.name, p.kind) for p in parameters.values()] == [
            (p.name, p.kind) for p in expected_parameters.values()
        ], name


def test_it_is_the_one_that_the_settings_name() -> None:
    assert isinstance(chatcore_compactor.get_compactor(), Compactor)


@pytest.mark.django_db
def test_it_lists_policies_and_chooses_the_first_that_there_is() -> None:
    compactor = Compactor()
    assert list(compactor.list_policies()) == list(PRESETS)
    assert compactor.choose_policy("nobody's", "").name == "oneclaw"
    assert compactor.choose_policy("", "chatcore").name == "chatcore"
