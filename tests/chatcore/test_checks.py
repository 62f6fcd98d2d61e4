"""The system checks of the setting CHATCORE and of the database."""

import sqlite3
import sys
from typing import Any

import pytest
from django.apps import apps
from django.core.checks import run_checks
from django.core.checks.registry import CheckRegistry
from django.test import override_settings

from chatcore import base
from chatcore import settings as project
from chatcore.base import checks
from chatcore.base.checks import check_provider_options, check_sqlite_version
from models_registry.models import Provider


def find_ids(**changes: object) -> list[str]:
    with override_settings(CHATCORE=project.CHATCORE | changes):
        return [str(message.id) for message in run_checks() if "chatcore." in str(message.id)]


def test_the_products_own_settings_pass() -> None:
    assert find_ids() == []
    assert find_ids(COMPACTOR=None) == []


def test_a_compactor_that_is_not_there_is_an_error() -> None:
    assert find_ids(COMPACTOR="compaction.nowhere.Compactor") == ["chatcore.E001"]


def test_an_sqlite_that_is_too_old_is_an_error_where_it_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    for engine, ids in (("sqlite3", ["chatcore.E002"]), ("postgresql", [])):
        monkeypatch.setitem(project.DATABASES["default"], "ENGINE", f"django.db.backends.{engine}")
        assert [message.id for message in check_sqlite_version()] == ids


@pytest.mark.django_db
def test_stored_options_that_the_form_would_refuse_are_warned_about() -> None:
    usable: Any = {"max_tokens_field": "max_tokens"}
    Provider.objects.create(name="fine", options=usable)
    misspelt: Any = {"max_token_field": "max_tokens"}
    Provider.objects.create(name="old", options=misspelt)
    assert check_provider_options() == []  # most commands ask for no database
    (warning,) = check_provider_options(databases=["default"])
    assert warning.id == "chatcore.W002"
    assert "provider old cannot be saved" in warning.msg


def test_the_app_registers_its_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = CheckRegistry()
    monkeypatch.setattr("django.core.checks.register", registry.register)
    monkeypatch.delitem(sys.modules, checks.__name__)
    monkeypatch.delattr(base, "checks")
    apps.get_app_config("chatcore").ready()
    names = {str(check).split()[1] for check in registry.registered_checks}
    assert names >= {"check_absent_apps", "check_compactor", "check_sqlite_version"}
