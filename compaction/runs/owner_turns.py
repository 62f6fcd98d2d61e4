"""The table of whose turn it is: one small row for each owner and kind of run, not for each run."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class OwnerTurn(models.Model):
    """Whether an owner may have runs that wait, and when one of the owner's was last claimed.

    A row stands for the runs of one policy, its number of places, and one provider, because these
    decide together whether a run may begin. A worker chooses among these rows; then it needs one
    row of the thousands that may wait.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    policy = models.CharField(max_length=64)
    provider = models.CharField(max_length=64, blank=True)
    places = models.IntegerField()
    is_waiting = models.BooleanField(
        default=True, help_text="A run may wait. False: none does, or only one to be tried later."
    )
    served_at = models.DateTimeField(help_text="When a run of this owner was last claimed.")

    class Meta:
        app_label = "compaction"
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "policy", "provider", "places"], name="one_turn_a_kind_of_run"
            )
        ]
        indexes = [
            models.Index(
                fields=["served_at", "id"], condition=Q(is_waiting=True), name="owners_in_line"
            )
        ]

    def __str__(self) -> str:
        return f"{self.owner_id} {self.policy} {self.provider}"
