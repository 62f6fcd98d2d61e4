"""What the pages show of the usage: a month for oneself, and one chat."""

from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.utils import timezone

from chatcore.models import Session, UsageSum
from chatcore.spending import budgets, sums


def build_month_context(user: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Return the user's usage of this month (UTC), by model, and the budgets that hold."""
    month_start = timezone.now().date().replace(day=1)
    rows = sums.select_usage(start=month_start, owner_id=user.pk)
    return {
        "usage": sums.add_up(rows),
        "usage_by_model": sums.add_up_by(rows, "model"),
        "budgets": budgets.list_budgets(user.pk),
    }


def add_up_chat(session: Session) -> sums.UsageTotal:
    """Return what all calls of a chat have used and cost, also for messages deleted since."""
    return sums.add_up(UsageSum.objects.filter(owner=session.owner_id, session=session.pk))
