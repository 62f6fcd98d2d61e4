"""What the file of CHATCORE_SETUP_FILE sets, so that the rest of the program leaves it alone."""

from django.db import models


class SetupEntryQuerySet(models.QuerySet["SetupEntry"]):
    """Queries for what the file sets."""

    def find(self, section: str, name: str) -> "SetupEntry | None":
        """Return the entry of a thing, or None if the file does not set it."""
        return self.filter(section=section, name=name).first()

    def list_names(self, section: str) -> set[str]:
        """Return the names of the things of a section that the file sets."""
        return set(self.filter(section=section).values_list("name", flat=True))


class SetupEntry(models.Model):
    """A thing that the file sets: its section and name there, and the names of its values."""

    section = models.CharField(max_length=32, help_text="As in the file: providers, models, …")
    name = models.CharField(max_length=200)
    fields = models.JSONField(default=list)

    objects = SetupEntryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["section", "name"], name="one_entry_a_thing")
        ]

    def __str__(self) -> str:
        return f"{self.section}.{self.name}"

    @property
    def text(self) -> str:
        """Say where it is set, and what."""
        names: list[str] = list(self.fields)
        return f"CHATCORE_SETUP_FILE sets this ({', '.join(names) or 'its name'}). Change it there."
