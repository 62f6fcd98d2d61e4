"""Stop runs by hand that failed several times, until something has changed: each is paid for."""

import json
from collections.abc import Mapping
from datetime import timedelta

from django.db.models.functions import Now

from compaction.models import CompactionRun
from compaction.sessions.fingerprint import compute_fingerprint
from compaction.sessions.session_context import SessionContext

Status = CompactionRun.Status
MAX_FAILURES = 3
MEMORY = timedelta(hours=1)  # a provider may work again although nothing has changed here


def describe_basis(context: SessionContext, options: Mapping[str, object]) -> str:
    """Return a fingerprint of all that decides how a run ends, apart from the model's mood."""
    facts = context.facts
    parts = [
        facts.live.version,
        facts.last_seq,
        facts.message_count,
        facts.model.name,
        facts.model.summary_model,
        facts.model.window,
        context.policy.to_dict(),
        {name: value for name, value in options.items() if value},
    ]
    return compute_fingerprint(json.dumps(parts, sort_keys=True, default=str))


def find_objection(run: CompactionRun) -> str:
    """Return why a run by hand would fail as the ones before; an empty text if it may succeed."""
    if not run.basis:
        return ""
    earlier_runs = CompactionRun.objects.filter(
        session_id=run.session_id, basis=run.basis, created_at__gt=Now() - MEMORY
    )
    ended_runs = earlier_runs.exclude(pk=run.pk).exclude(status=Status.SKIPPED)
    newest_runs = list(ended_runs.order_by("-created_at")[:MAX_FAILURES])
    has_failed = [earlier.status in (Status.FAILED, Status.FELL_BACK) for earlier in newest_runs]
    if len(has_failed) < MAX_FAILURES or not all(has_failed):
        return ""
    return (
        f"It failed {MAX_FAILURES} times, and nothing has changed since: {newest_runs[0].reason} "
        "Other instructions, another policy or another model can help; so may an hour."
    )
