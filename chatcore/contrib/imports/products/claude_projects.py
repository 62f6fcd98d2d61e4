"""Claude's projects with their documents, and what it remembers, as documents of projects."""

from collections.abc import Iterator
from typing import Any

from chatcore.contrib.imports.conversation import ChatFile, ForeignProject
from chatcore.contrib.imports.export_files import (
    UNREADABLE,
    Export,
    Member,
    Sample,
    parse_json,
    to_items,
)
from chatcore.contrib.imports.json_items import MAX_ITEM_BYTES
from chatcore.contrib.imports.loose_json import join_words, to_dict, to_list, to_text
from chatcore.contrib.imports.products.base import Reader, Source, has_keys
from chatcore.transfer.times import parse_time

MEMORY_NAME = "Memory of Claude"
MEMORY_FILE = "memory.md"


class ClaudeProjectReader(Reader):
    """Projects: `projects.json`, or a file for each."""

    key = "claude"
    name = "Claude"
    has_projects = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and has_keys(sample, "prompt_template", "docs")

    def read_projects(self, value: object, source: Source) -> Iterator[ForeignProject]:
        yield _build_project(value)


class ClaudeMemoryReader(Reader):
    """What Claude remembers of a person, and of each project."""

    key = "claude"
    name = "Claude"
    has_projects = True

    def recognizes(self, sample: Sample, member: Member) -> bool:
        return sample.kind in ("list", "object") and has_keys(sample, "conversations_memory")

    def read_projects(self, value: Any, source: Source) -> Iterator[ForeignProject]:
        """Yield a project for what is remembered of all chats, and those that have a memory."""
        if words := to_text(value.get("conversations_memory")):
            yield ForeignProject(name=MEMORY_NAME, files=[ChatFile.from_text(MEMORY_FILE, words)])
        projects = _find_projects(source.export)
        for key, words in to_dict(value.get("project_memories")).items():
            if key in projects and to_text(words):
                project = _build_project(projects[key])
                project.files = [ChatFile.from_text(MEMORY_FILE, words)]
                yield project


def _build_project(value: Any) -> ForeignProject:
    return ForeignProject(
        name=to_text(value.get("name")),
        instructions=join_words(
            to_text(value.get("description")), to_text(value.get("prompt_template"))
        ),
        files=[
            ChatFile.from_text(
                to_text(file.get("filename")) or "document.txt", to_text(file.get("content"))
            )
            for file in to_items(value.get("docs"))
        ],
        created_at=parse_time(value.get("created_at")),
    )


def _find_projects(export: Export) -> dict[str, dict[str, Any]]:
    """Return the projects of an export by their ids."""
    found = {}
    for member in export.members:
        if member.base_name != "projects.json" and "projects/" not in member.name:
            continue
        try:
            value = parse_json(member.read(MAX_ITEM_BYTES))
        except UNREADABLE:
            continue
        for item in to_list(value) or [value]:
            project = to_dict(item)
            if "prompt_template" in project:
                found[to_text(project.get("uuid"))] = project
    return found
