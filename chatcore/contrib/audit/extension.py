"""Note acts, and delete what is older than its retention."""

from dataclasses import asdict
from datetime import timedelta

from django.conf import settings
from django.db.models import QuerySet

from chatcore.accounts.audit import Act
from chatcore.base.databases.clock import read_clock
from chatcore.contrib.audit.models import AuditEntry
from chatcore.extension import Chore, Extension

MAX_DETAIL = AuditEntry._meta.get_field("detail").max_length or 0
BATCH_ROWS = 250
PRUNE_SECONDS = 600.0


class Audit(Extension):
    def record_act(self, act: Act) -> None:
        """Add an entry, in the transaction of the act."""
        AuditEntry.objects.create(**{**asdict(act), "detail": act.detail[:MAX_DETAIL]})

    def list_chores(self) -> list[Chore]:
        return [Chore(PRUNE_SECONDS, prune_entries, is_deletion=True)]


def prune_entries() -> int:
    """Delete the entries whose time is over. Returns how many."""
    if not settings.AUDIT_DAYS:
        return 0
    old_rows = AuditEntry.objects.filter(at__lt=read_clock() - timedelta(days=settings.AUDIT_DAYS))
    count = 0
    while ids := list(old_rows.order_by("at").values_list("pk", flat=True)[:BATCH_ROWS]):
        rows = AuditEntry.objects.filter(pk__in=ids)
        # The log's own `delete()` refuses, for everybody else.
        count += QuerySet.delete(rows)[0]
    return count
