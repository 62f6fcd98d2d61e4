"""COMPACTION in a project of one's own: checks name what is missing or wrong before it fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.apps import apps
from django.conf import settings
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
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
    ("setting", "words"),
    [
        (None, "The setting COMPACTION is missing."),
        ([], "The setting COMPACTION must be a dictionary."),
        ({"SESSION_MODEL": ...}, 'COMPACTION["SESSION_MODEL"] is missing'),
        ({"SESSION_MODEL": "Talk"}, "COMPACTION[\"SESSION_MODEL\"] is 'Talk'"),
        ({"SESSION_MODEL": 3}, 'COMPACTION["SESSION_MODEL"] is 3; it must be "app_label.Model".'),
    ],
)
def test_without_a_session_model_the_app_is_not_loaded_and_says_why(
    setting: Any, words: str
) -> None:
    with change_setting(setting), pytest.raises(ImproperlyConfigured) as refusal:
        apps.get_app_config("compaction").import_models()
    assert words in str(refusal.value)
    assert "docs/embedding.md" in str(refusal.value)


@pytest.mark.parametrize(
    ("changes", "name", "words"),
    [
        ({"BACKEND": ...}, "E001", 'COMPACTION["BACKEND"] is missing'),
        ({"BACKEND": "talks.backend.Talks"}, "E001", "No module named 'talks'"),
        ({"BACKEND": "compaction.apps.Talks"}, "E001", "Talks"),
        ({"BACKEND": "compaction.apps.Compaction"}, "E006", "load_session_facts()"),
        ({"POLICY": ...}, "E002", 'COMPACTION["POLICY"] must be the name of a policy.'),
        ({"POLICY": 1}, "E002", 'COMPACTION["POLICY"] must be the name of a policy.'),
        ({"SESSION_MODEL": "talks.Talk"}, "E005", 'is "talks.Talk", and no installed app'),
        ({"SESSION_MODEL": "auth.User"}, "E008", "its primary key must be a UUIDField"),
        ({"AUTOMATIC": "no"}, "E007", 'COMPACTION["AUTOMATIC"] must be True or False.'),
        ({"THRESHOLD": 1.5}, "E007", 'COMPACTION["THRESHOLD"] must be None, a share'),
        ({"THRESHOLD": True}, "E007", 'COMPACTION["THRESHOLD"] must be None, a share'),
        ({"SUMMARY_MODEL": None}, "E007", 'COMPACTION["SUMMARY_MODEL"] must be the name'),
        ({"ADMIN_CLASS": 1}, "E007", 'COMPACTION["ADMIN_CLASS"] must be the dotted path'),
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
