"""The clock by which leases are measured: that of the database, which all machines share."""

from datetime import datetime
from typing import cast

from django.db import connection
from django.utils import timezone


def read_clock() -> datetime:
    """Return the time of the database.

    The clocks of two machines differ, and a lease that one of them wrote is judged by the other.
    SQLite has no clock but that of its only machine.
    """
    if connection.vendor != "postgresql":
        return timezone.now()
    with connection.cursor() as cursor:
        # Not CURRENT_TIMESTAMP, which stands still in a transaction.
        cursor.execute("SELECT statement_timestamp()")
        return cast(datetime, cursor.fetchone()[0])
