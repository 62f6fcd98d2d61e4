"""Modules that have moved: what names them by their old paths finds them until version 0.3."""

import sys
from importlib import import_module

import pytest
from django.utils.module_loading import import_string

from chatcore.base import moved_modules


@pytest.fixture(autouse=True)
def forgotten() -> None:
    """Let nobody have imported a module by its old name before."""
    for name in list(sys.modules):
        if moved_modules.find_new_name(name):
            del sys.modules[name]


@pytest.mark.parametrize("old_name", sorted(moved_modules.list_old_names()))
def test_an_old_name_is_the_module_at_its_new_place(old_name: str) -> None:
    new_name = moved_modules.find_new_name(old_name)
    with pytest.warns(PendingDeprecationWarning, match=f"{new_name} now"):
        module = import_module(old_name)
    assert module is import_module(new_name)
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == new_name


@pytest.mark.filterwarnings("ignore:.* the old name works until:PendingDeprecationWarning")
@pytest.mark.parametrize(
    ("old_path", "new_path"),
    [
        # As settings name it, a migration, and a program.
        ("chatcore.caches.ResilientRedisCache", "chatcore.base.caches.ResilientRedisCache"),
        (
            "chatcore.databases.indexes.AddIndexWithoutLock",
            "chatcore.base.databases.indexes.AddIndexWithoutLock",
        ),
        ("chatcore.rest.problems.Problem", "chatcore.base.rest.problems.Problem"),
    ],
)
def test_what_a_module_holds_is_the_same_under_both_names(old_path: str, new_path: str) -> None:
    assert import_string(old_path) is import_string(new_path)


def test_a_name_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"chatcore\.base\.databases\.nothing"):
        import_module("chatcore.databases.nothing")
    with pytest.raises(ModuleNotFoundError):
        import_module("chatcore.databases_of_others")
