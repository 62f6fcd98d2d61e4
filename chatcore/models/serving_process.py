"""The processes that use the database now, of all machines: web processes and worker commands."""

from django.db import models


class ServingProcess(models.Model):
    """The newest sign of life of one process, which says of what version it is."""

    class Kind(models.TextChoices):
        """What it does."""

        WEB = "web"
        WORKER = "worker"

    name = models.CharField(
        primary_key=True, max_length=200, help_text="The machine and the process, as host:pid."
    )
    kind = models.CharField(max_length=10, choices=Kind.choices)
    version = models.CharField(max_length=50, help_text="That of the package.")
    migrations = models.CharField(
        max_length=12, help_text="A digest of the migrations that it knows."
    )
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
