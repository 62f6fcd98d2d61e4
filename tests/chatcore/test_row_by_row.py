"""Chores go row by row: one that cannot be treated stops none of the others."""

import logging
import sqlite3
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError
from django.utils import timezone

from chatcore.base.row_by_row import try_each
from chatcore.models import Session
from chatcore.sessions import deletion


def refuse_two(key: int) -> int:
    if key == 2:
        raise ValueError("broken")
    return key


def test_the_others_are_treated_and_the_failure_is_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            assert try_each([1, 2, 3], refuse_two, what="treat the number") == [1, 3]
    assert [record.message for record in caplog.records] == [
        "could not treat the number 2; the others go on"
    ]


def test_it_is_logged_again_when_it_fails_anew(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        try_each([2], refuse_two, what="mend the number")
        try_each([2], abs, what="mend the number")
        try_each([2], refuse_two, what="mend the number")
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("code", "is_raised"), [(sqlite3.SQLITE_IOERR, True), (sqlite3.SQLITE_BUSY, False)]
)
def test_a_database_that_is_away_ends_the_round(code: int, is_raised: bool) -> None:
    cause = sqlite3.OperationalError("no")
    cause.sqlite_errorcode = code
    error = OperationalError("no")
    error.__cause__ = cause
    treated: list[int] = []

    def treat(key: int) -> None:
        treated.append(key)
        raise error

    if is_raised:
        with pytest.raises(OperationalError):
            try_each([1, 2], treat, what="read the number")
        assert treated == [1]
    else:
        assert try_each([1, 2], treat, what="read the number") == []
        assert treated == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_a_hidden_session_that_cannot_be_deleted_stops_no_other(
    user: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = [Session.objects.create(owner=user, discard_at=timezone.now()) for _ in range(3)]
    purge = deletion.purge_session

    def purge_or_fail(session_id: UUID, **options: Any) -> bool:
        if session_id == sessions[0].pk:
            raise ValueError("a broken row")
        return purge(session_id, **options)

    monkeypatch.setattr(deletion, "purge_session", purge_or_fail)
    assert deletion.purge_due_sessions() == 2
    assert list(Session.all_objects.all()) == [sessions[0]]
