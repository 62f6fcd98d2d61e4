"""What holds whole outputs of tools, and uploaded files, outside the database."""

from functools import partial

from django.db import models, transaction
from django.db.models.deletion import Collector

from chatcore import signals
from chatcore.base.databases.fields import CascadingOneToOneField
from chatcore.models.attachment import Attachment
from chatcore.models.session import Session


def cascade_to_file(
    collector: Collector, field: models.ForeignKey, rows: "models.QuerySet[OutputFile]", using: str
) -> None:
    """Delete the rows with the output that they belong to, and their files after the commit."""
    names = list(rows.values_list("name", flat=True))
    announce = partial(signals.files_released.send, sender=OutputFile, names=names)
    transaction.on_commit(announce, using=using, robust=True)
    models.CASCADE(collector, field, rows, using)


class OutputFile(models.Model):
    """Where an output or the bytes of a file are that are not stored in their own row.

    The copy of a message in a fork refers to the same file, which goes with the last of them.
    """

    attachment = CascadingOneToOneField(Attachment, on_delete=cascade_to_file, related_name="file")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="output_files")
    name = models.CharField(max_length=100, db_index=True, help_text="In the store of outputs.")
    size = models.PositiveIntegerField(help_text="Bytes.")

    def __str__(self) -> str:
        return self.name
