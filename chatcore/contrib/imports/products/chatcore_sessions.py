"""Chatcore's own sessions: single files, and those of the archive of everything."""

from collections.abc import Iterator

from chatcore.contrib.imports.conversation import Conversation
from chatcore.contrib.imports.export_files import Member, Sample
from chatcore.contrib.imports.products.base import Reader, Source
from chatcore.transfer.exporter import FORMAT


class ChatcoreReader(Reader):
    """Sessions as `exporter.export_session` writes them, which come back whole."""

    key = "chatcore"
    name = "Chatcore"
    is_own = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return any(item.get("format") == FORMAT for item in sample.items)

    def read(self, value: object, source: Source) -> Iterator[Conversation]:
        """Yield nothing: the importer takes these sessions whole."""
        return iter(())
