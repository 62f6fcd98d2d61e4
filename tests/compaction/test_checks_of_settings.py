"""COMPACTION in a project of one's own: checks name what is missing or wrong before it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.conf import settings
from django.core.checks import run_checks
from django.test import override_settings

GOOD = dict(settings.COMPACTION)


@contextmanager
def change_setting(changes: Any) -> Iterator[None]:
    """Change names of COMPACTION, or replace it by what is no dictionary; `...` removes a name."""
    if not isinstance(changes, dict):
        with override_settings(COMPACTION=changes):
            yield
        return
    values = {name: value for name, value in {**GOOD, **changes}.items() if value is not ...}
    with override_settings(COMPACTION=values):
        yield


def find_messages(changes: dict[str, Any]) -> list[tuple[str, str]]:
    with change_setting(changes):
        messages = run_checks()
    return [
        (str(message.id).removeprefix("compaction."), message.msg)
        for message in messages
        if str(message.id).startswith("compaction.")
    ]


def test_the_products_own_settings_pass() -> None:
    assert find_messages({}) == []


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"POLICY": 1}, "E002", 'COMPACTION["POLICY"] must be the name of a policy.'),
        ({"AUTOMATIC": "no"}, "E007", 'COMPACTION["AUTOMATIC"] must be True or False.'),
        ({"THRESHOLD": 1.5}, "E007", 'COMPACTION["THRESHOLD"] must be None, a share'),
        ({"THRESHOLD": True}, "E007", 'COMPACTION["THRESHOLD"] must be None, a share'),
        ({"SUMMARY_MODEL": None}, "E007", 'COMPACTION["SUMMARY_MODEL"] must be the name'),
        ({"BACKEND": "talks.Talks"}, "W002", 'COMPACTION["BACKEND"] is no setting of compaction.'),
        ({"POLCY": "oneclaw"}, "W002", 'COMPACTION["POLCY"] is no setting of compaction.'),
    ],
)
def test_a_wrong_name_or_value_is_named(changes: dict[str, Any], name: str, words: str) -> None:
    messages = find_messages(changes)
    assert name in {found for found, _ in messages}, messages
    assert any(words in text for found, text in messages if found == name), messages


def test_a_host_without_the_queue_is_warned_that_nothing_starts_by_itself() -> None:
    installed = [name for name in settings.INSTALLED_APPS if name != "django_q"]
    with override_settings(INSTALLED_APPS=installed):
        assert [name for name, _ in find_messages({})] == ["W003"]
        assert find_messages({"AUTOMATIC": False}) == []
