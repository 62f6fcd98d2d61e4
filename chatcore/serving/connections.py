"""How many connections web processes may open, compared with what PostgreSQL's server allows."""

from collections.abc import Sequence

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import DatabaseError, connection

from chatcore.base.threads import LEASES, RECEIVERS, RECOVERY, STORING
from chatcore.models import ServingProcess
from chatcore.serving import processes

# Beside the pool: threads with connections of their own (chatcore/base/threads.py), the writer of
# deltas, the listener where Redis is not used, and the watch of those who sign out.
OWN_CONNECTIONS = STORING.size + RECEIVERS.size + LEASES.size + RECOVERY.size + 3


def find_shortage(web_count: int) -> str:
    """Say that so many web processes may open more connections than the server allows, or ""."""
    pool = connection.settings_dict["OPTIONS"].get("pool")
    if connection.vendor != "postgresql" or not pool:
        return ""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('max_connections')::int"
            " - current_setting('superuser_reserved_connections')::int"
        )
        (allowed,) = cursor.fetchone()
    each = pool["max_size"] + OWN_CONNECTIONS
    if web_count * each <= allowed:
        return ""
    return (
        f"{web_count} web processes may open {web_count * each} connections ({each} each), and the"
        f" database's server allows {allowed}, workers and commands included."
    )


@register(Tags.database)
def check_connections(databases: Sequence[str] | None = None, **_: object) -> list[CheckMessage]:
    """Warn if the web processes that live may open more connections than the server allows."""
    if not databases:
        return []
    try:
        shortage = find_shortage(processes.count_processes(ServingProcess.Kind.WEB))
    except DatabaseError:  # there is none yet
        return []
    hint = "Raise max_connections, or run fewer web processes (docs/operating.md, Database)."
    return [Warning(shortage, hint=hint, id="chatcore.W003")] if shortage else []
