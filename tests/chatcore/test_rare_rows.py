"""That there are no budgets, webhooks and rights of groups is remembered, but never for long."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from chatcore.base import rare_rows
from chatcore.contrib.budgets.models import ACTIVE_BUDGETS, Budget
from chatcore.contrib.group_rights.models import GROUP_RIGHTS, GroupRights
from chatcore.contrib.webhooks.models import ACTIVE_WEBHOOKS, Webhook

FRESH_SECONDS = rare_rows.FRESH_SECONDS  # as it is when no test runs
KINDS = (ACTIVE_BUDGETS, ACTIVE_WEBHOOKS, GROUP_RIGHTS)


def run_in_thread(function: Callable[[], object]) -> object:
    """Call it with a connection of its own."""

    def run_and_close() -> object:
        try:
            return function()
        finally:
            connection.close()

    with ThreadPoolExecutor() as executor:
        return executor.submit(run_and_close).result()


def list_present() -> list[rare_rows.RareRows]:
    return [kind for kind in KINDS if kind.may_exist()]


def test_no_answer_is_older_than_two_seconds() -> None:
    assert FRESH_SECONDS < 2


@pytest.mark.django_db
def test_one_statement_asks_for_all_kinds_and_none_asks_again() -> None:
    with CaptureQueriesContext(connection) as captured:
        assert list_present() == list_present() == []
    assert len(captured) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("kind", "store"),
    [
        (ACTIVE_BUDGETS, lambda user: Budget.objects.create(amount=1)),
        (ACTIVE_BUDGETS, lambda user: Budget.objects.bulk_create([Budget(amount=1)])),
        (ACTIVE_WEBHOOKS, lambda user: user.webhooks.create(url="https://example.com")),
        (
            GROUP_RIGHTS,
            lambda user: GroupRights.objects.create(
                group=Group.objects.create(name="few"), limits_tools=True
            ),
        ),
    ],
)
def test_a_row_of_this_process_is_seen_at_once(
    user: User, kind: rare_rows.RareRows, store: Callable[[User], object]
) -> None:
    assert list_present() == []
    store(user)
    assert list_present() == [kind]


@pytest.mark.django_db
def test_a_row_that_is_switched_on_is_seen_at_once(user: User) -> None:
    Budget.objects.create(amount=1, is_active=False)
    webhook = Webhook.objects.create(owner=user, url="https://example.com", is_active=False)
    assert list_present() == []
    Budget.objects.update(is_active=True)
    assert list_present() == [ACTIVE_BUDGETS]
    webhook.is_active = True
    webhook.save(update_fields=["is_active"])
    assert list_present() == [ACTIVE_BUDGETS, ACTIVE_WEBHOOKS]


@pytest.mark.django_db(transaction=True)
def test_a_row_is_seen_after_its_commit_by_who_asked_before() -> None:
    with transaction.atomic():
        Budget.objects.create(amount=1)
        assert run_in_thread(list_present) == []  # and this is remembered
    assert list_present() == [ACTIVE_BUDGETS]


@pytest.mark.django_db(transaction=True)
def test_a_row_of_another_process_is_seen_when_the_answer_is_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert list_present() == []

    def insert_as_another_process_does() -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO chatcore_budget (amount, period, warning_percent, is_active)"
                " VALUES (1, 'day', 80, %s)",
                [True],
            )

    run_in_thread(insert_as_another_process_does)
    assert list_present() == []
    monkeypatch.setattr(rare_rows, "FRESH_SECONDS", 0.0)
    assert list_present() == [ACTIVE_BUDGETS]
