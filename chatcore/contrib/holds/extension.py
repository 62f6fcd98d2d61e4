"""What may not be deleted while a hold is open."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet

from chatcore.contrib.holds.models import Hold
from chatcore.extension import Extension


class Holds(Extension):
    def select_kept_owners(self) -> QuerySet[Any, Any]:
        return Hold.objects.filter_active().values("user")

    def list_keepers(self, user_ids: Sequence[Any]) -> list[str]:
        holds = Hold.objects.filter_active().filter(user__in=user_ids).select_related("user")
        return [f"{hold._meta.verbose_name} of {hold}" for hold in holds]

    def find_reason_to_stay(self) -> str:
        count = Hold.objects.filter_active().count()
        return f"{count} legal holds are open. End them first." if count else ""
