"""What calls of language models used and cost, and how much they may cost."""

from decimal import Decimal

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q

from chatcore.accounts.spending import NO_SESSION, Purpose
from chatcore.base.rare_rows import RareRow, RareRowQuerySet, RareRows

COST_UNIT = Decimal("1e-12")  # the smallest cost: a millionth of a price's last digit


class UsageSum(models.Model):
    """The calls of one model for one purpose in one session, on one day (UTC), added up.

    It is not deleted with its session or its model, because the money is spent. `session` is
    NO_SESSION for calls without a session. Costs are whole numbers of COST_UNIT, because SQLite
    adds decimals as floating point numbers.
    """

    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        db_index=False,  # `usage_of_an_owner` begins with it
        related_name="+",
    )
    session = models.UUIDField(default=NO_SESSION)
    day = models.DateField()
    model = models.CharField(max_length=200, help_text="provider/name")
    purpose = models.CharField(max_length=16, choices=Purpose.choices)
    calls = models.PositiveIntegerField(default=0)
    unpriced_calls = models.PositiveIntegerField(
        default=0, help_text="Calls of unknown cost: the model had no price, or counted no tokens."
    )
    input_tokens = models.BigIntegerField(default=0, help_text="With cache reads and writes.")
    cache_read_tokens = models.BigIntegerField(default=0)
    cache_write_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    recalled_tokens = models.BigIntegerField(
        default=0, help_text="Estimated tokens of the input that recall brought back."
    )
    spared_tokens = models.BigIntegerField(
        default=0, help_text="Estimated tokens of older messages that summaries stood for."
    )
    cost_units = models.BigIntegerField(default=0)
    recall_units = models.BigIntegerField(default=0, help_text="The part of the cost for recall.")
    cache_saving_units = models.BigIntegerField(
        default=0, help_text="What the cache saved; negative where writing to it cost more."
    )
    summary_saving_units = models.BigIntegerField(
        default=0, help_text="What sending the spared tokens would have cost."
    )
    estimated_units = models.BigIntegerField(
        default=0,
        db_default=0,
        help_text="What calls may cost that run now, or that nobody counted. No part of the cost.",
    )

    class Meta:
        db_table = "chatcore_usagesum"
        verbose_name = "usage"
        verbose_name_plural = "usage"
        permissions = [("view_everyones_usage", "Can see what everyone used and spent over REST")]
        constraints = [
            models.UniqueConstraint(
                fields=["session", "day", "model", "purpose", "owner"], name="one_usage_sum"
            ),
        ]
        indexes = [
            models.Index(fields=["owner", "day"], name="usage_of_an_owner"),
            models.Index(fields=["day"], name="usage_of_a_day"),
        ]

    def __str__(self) -> str:
        return f"{self.day}, {self.model}, {self.purpose}"

    @property
    def cost(self) -> Decimal:
        """Return the known cost, in the currency of the prices."""
        return self.cost_units * COST_UNIT


class Budget(RareRow):
    """What the calls of a user, of a group's members together, or of everyone may cost."""

    class Period(models.TextChoices):
        DAY = "day", "a day"
        MONTH = "month", "a month"

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    group = models.ForeignKey(
        Group,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="+",
        help_text="Its members together. Without a user and a group: everyone together.",
    )
    amount = models.DecimalField(
        max_digits=12,
        decimal_places=2,
        validators=[MinValueValidator(0)],
        help_text="In the currency of the models' prices.",
    )
    period = models.CharField(max_length=8, choices=Period.choices, default=Period.MONTH)
    warning_percent = models.PositiveSmallIntegerField(
        default=80, help_text="People are warned when so much of it is spent."
    )
    is_active = models.BooleanField(default=True)

    objects = RareRowQuerySet["Budget"].as_manager()

    class Meta:
        db_table = "chatcore_budget"
        constraints = [
            models.CheckConstraint(
                condition=Q(user=None) | Q(group=None), name="budget_of_a_user_or_a_group"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} {self.get_period_display()} for {self.user or self.group or 'all'}"

    def clean(self) -> None:
        """Refuse a budget of a user and a group at once, and a warning above the amount."""
        if self.user_id and self.group_id:
            raise ValidationError("A budget is of a user or of a group, not of both.")
        if self.warning_percent > 100:
            raise ValidationError({"warning_percent": "At most 100 percent."})


ACTIVE_BUDGETS = RareRows("chatcore_budget", "is_active")
