"""PostgreSQL that is read-only for a while, as after a failover, is away and no failure."""

import asyncio

import pytest
from django.db import InternalError, connection, transaction

from chatcore.base.databases.outages import DATABASE_AWAY, find_outage, store_patiently
from chatcore.base.threads import run_until_stored
from chatcore.models import Session

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no standby."),
]


class Failover:
    """Renames a session, at first in a transaction that may only read."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.attempts = 0

    def rename(self) -> str:
        self.attempts += 1
        with transaction.atomic():
            if self.attempts < 3:
                with connection.cursor() as cursor:
                    cursor.execute("SET TRANSACTION READ ONLY")
            Session.objects.filter(pk=self.session.pk).update(title="Whole")
        return "stored"


def test_what_a_turn_stores_is_tried_until_the_database_takes_it(session: Session) -> None:
    failover = Failover(session)

    assert asyncio.run(run_until_stored(failover.rename)) == "stored"
    session.refresh_from_db()
    assert (failover.attempts, session.title) == (3, "Whole")


def test_what_a_run_stores_is_tried_too(session: Session) -> None:
    failover = Failover(session)
    assert store_patiently(failover.rename) == "stored"
    with pytest.raises(InternalError) as caught:
        Failover(session).rename()
    assert find_outage(caught.value) is DATABASE_AWAY
