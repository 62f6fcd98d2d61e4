"""Summaries for runs that a test stores itself: a run tells those of revisions."""

from django.db.models import Max

from chatcore.models import Session


def store_summaries(
    session: Session, *, before: str | None = None, after: str | None = None
) -> dict[str, int]:
    """Store a revision for each summary; return the columns of the run that tells them.

    They are stale, so that nothing goes back to them, and the next one is numbered after them.
    """
    newest = session.revisions.aggregate(newest=Max("version"))["newest"] or 0
    versions = {"version_before": newest + 1, "version_after": newest + 2}
    for version, summary in zip(versions.values(), (before, after), strict=True):
        session.revisions.create(version=version, summary=summary, source="compaction", stale=True)
    Session.objects.filter(pk=session.pk).update(context_version=newest + 2)
    return versions
