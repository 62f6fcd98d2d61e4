"""The system checks of the setting CHATCORE."""

from django.core.checks import run_checks
from django.test import override_settings

from chatcore import settings as project
from chatcore.checks import REPLACED_SETTINGS


def find_ids(**changes: object) -> list[str]:
    with override_settings(CHATCORE=project.CHATCORE | changes):
        return [str(message.id) for message in run_checks() if "chatcore." in str(message.id)]


def test_the_products_own_settings_pass() -> None:
    assert find_ids() == []
    assert find_ids(COMPACTOR=None) == []


def test_a_compactor_that_is_not_there_is_an_error() -> None:
    assert find_ids(COMPACTOR="compaction.nowhere.Compactor") == ["chatcore.E001"]


def test_settings_of_earlier_versions_are_warned_about() -> None:
    assert find_ids(**dict.fromkeys(REPLACED_SETTINGS, "some.path")) == ["chatcore.W001"] * 4
