"""Chatcore's own sessions: single files, and those of the archive of everything."""

import base64
import binascii
from collections.abc import Iterator
from functools import partial

from chatcore.contrib.imports.conversation import ChatFile, Conversation, ForeignProject
from chatcore.contrib.imports.export_files import Member, Sample, to_items
from chatcore.contrib.imports.json_items import to_list, to_text
from chatcore.contrib.imports.products.base import Reader, Source, has_keys, require_object
from chatcore.transfer.exporter import FORMAT
from chatcore.transfer.times import parse_time


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


class ChatcoreProjectReader(Reader):
    """Projects as `projects/export.py` writes them."""

    key = "chatcore"
    name = "Chatcore"
    has_projects = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return has_keys(sample, "name", "instructions", "rules", "files", "sessions", "edited_at")

    def read_projects(self, value: object, source: Source) -> Iterator[ForeignProject]:
        project = require_object(value)
        yield ForeignProject(
            name=to_text(project.get("name")),
            instructions=to_text(project.get("instructions")),
            rules=[to_text(rule) for rule in to_list(project.get("rules"))],
            files=[
                ChatFile(
                    name=to_text(file.get("name")) or "file",
                    load=partial(_decode, to_text(file.get("data"))),
                )
                for file in to_items(project.get("files"))
            ],
            chats=[to_text(chat) for chat in to_list(project.get("sessions"))],
            created_at=parse_time(project.get("created_at")),
        )


def _decode(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True) or None
    except (binascii.Error, ValueError):
        return None
