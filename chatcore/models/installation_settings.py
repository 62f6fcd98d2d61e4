"""What staff set in the admin for the whole installation."""

from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.db import models

from chatcore.base.rare_rows import RareRow, RareRowQuerySet

MAX_HOSTS_CHARS = 10_000


def check_hosts(text: str) -> None:
    """Raise ValidationError unless each line is a host, or a host and its port."""
    for line in text.split():
        try:
            parts = urlsplit(f"//{line}")
            is_right = bool(parts.hostname) and parts.port != 0 and parts.netloc == line
        except ValueError:
            is_right = False
        if not is_right or "@" in line:
            raise ValidationError(
                f"This is no host, as wiki.internal or 10.0.0.7:8345: {line!r}.", code="invalid"
            )


class InstallationSettings(RareRow):
    """The only row of its table. Each column counts where no variable of the environment does.

    `chatcore.base.stored_settings` reads them.
    """

    sign_up = models.CharField(
        max_length=20, blank=True, default="", help_text="Who may make an account."
    )
    allowed_hosts = models.TextField(
        blank=True,
        default="",
        max_length=MAX_HOSTS_CHARS,
        validators=[check_hosts],
        verbose_name="hosts of the inner network",
        help_text=(
            "One a line, as wiki.internal or 10.0.0.7:8345: what calls addresses that people give,"
            " as tool servers, may reach them, though they are not on the public internet."
        ),
    )
    policy = models.CharField(
        max_length=64,
        blank=True,
        default="",
        help_text="The compaction policy of chats for which neither they nor their model name one.",
    )
    encrypted_web_search = models.TextField(blank=True, default="", editable=False)

    objects = RareRowQuerySet["InstallationSettings"].as_manager()

    secret_columns = ("encrypted_web_search",)

    class Meta:
        verbose_name = "settings of the installation"
        verbose_name_plural = "settings of the installation"

    def __str__(self) -> str:
        return "Settings"
