"""What the pages show of the usage: a month for oneself, and one chat."""

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils import timezone
from django.utils.safestring import SafeString

from chatcore.contrib.budgets import limits, sums
from chatcore.contrib.budgets.models import UsageSum
from chatcore.models import Session


def render_month(request: HttpRequest) -> SafeString:
    """Render the user's usage of this month (UTC), by model, and the budgets that hold."""
    month_start = timezone.now().date().replace(day=1)
    rows = sums.select_usage(start=month_start, owner_id=request.user.pk)
    context = {
        "usage": sums.add_up(rows),
        "usage_by_model": sums.add_up_by(rows, "model"),
        "budgets": limits.list_budgets(request.user.pk),
    }
    return render_to_string("budgets/usage.html", context, request)


def render_chat(request: HttpRequest, session: Session) -> list[SafeString]:
    """Render what all calls of a chat have cost, also for messages deleted since."""
    usage = sums.add_up(UsageSum.objects.filter(owner=session.owner_id, session=session.pk))
    if not usage.calls:
        return []
    return [render_to_string("budgets/chat.html", {"usage": usage}, request)]
