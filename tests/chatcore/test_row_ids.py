"""Ids of sessions, turns and runs come in the order of time; nothing that opens something does."""

import pytest
from django.apps import apps
from django.db import models

from chatcore.base.row_ids import make_row_id

ORDERED = {"chatcore.Session", "chatcore.Turn", "compaction.CompactionRun"}


@pytest.mark.skipif(
    make_row_id().version == 4, reason="bin/setup has not run since uuid-utils came."
)
def test_an_id_is_higher_than_those_before_it() -> None:
    ids = [make_row_id() for _ in range(1_000)]
    assert ids == sorted(ids)
    assert {each.version for each in ids} == {7}


@pytest.mark.parametrize("model", apps.get_models(), ids=lambda model: model._meta.label)
def test_ids_of_what_may_open_something_cannot_be_guessed(model: type[models.Model]) -> None:
    key = model._meta.pk
    if isinstance(key, models.UUIDField):
        assert (key.default is make_row_id) == (model._meta.label in ORDERED)
