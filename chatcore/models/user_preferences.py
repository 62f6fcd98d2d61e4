"""What a user has set for all of their chats."""

import zoneinfo

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import models

MAX_ZONE_NAME = 64


def check_time_zone(name: str) -> None:
    """Raise ValidationError unless this is the name of a time zone, as `Europe/Berlin`."""
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValidationError(
            f"This is not the name of a time zone, as Europe/Berlin: {name!r}.", code="invalid"
        ) from None


class UserPreferences(models.Model):
    """The preferences of a user; there is no row before the first one is set.

    `time_zone` is that in which summaries and memory name the days of messages. The page sets it
    from the browser. Empty: that of the installation (`TIME_ZONE`). `default_model` is the model of
    new sessions, in place of the installation's.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, primary_key=True, related_name="+"
    )
    time_zone = models.CharField(
        max_length=MAX_ZONE_NAME, blank=True, default="", validators=[check_time_zone]
    )
    # Without an index: only a deleted model is looked for.
    default_model = models.ForeignKey(
        "models_registry.AiModel",
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="+",
        db_index=False,
    )

    class Meta:
        verbose_name_plural = "user preferences"

    def __str__(self) -> str:
        return f"preferences of user {self.pk}"

    @classmethod
    def keep(cls, user_id: int, **values: object) -> None:
        """Store preferences of a user; what is not named stays."""
        cls._default_manager.update_or_create(user_id=user_id, defaults=values)
