"""The tool `search_project_files`: quote files of the project that are too long to be shown."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

from chatcore.models import Session, Turn
from chatcore.projects import file_search
from chatcore.projects.file_search import FilePassage, FoundPassages
from chatcore.tools.base import BuiltInTool, ToolError

MAX_QUESTION_CHARS = 1_000
READ_CHARS = 8_000


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return passages that fit the question, each with its place; without one, a part of a file."""
    sessions = Session.objects.values_list("project", "owner")
    project_id, owner_id = sessions.get(pk=session_id)
    names = file_search.list_names(project_id) if project_id else []
    file_name, question = arguments.get("file", ""), arguments.get("query", "")
    if not names:
        raise ToolError("This conversation is in no project with files.")
    if file_name and file_name not in names:
        raise ToolError(f"There is no file {file_name!r}. There are: {', '.join(names)}.")
    if not (question or file_name):
        raise ToolError("Name a query, or a file to read.")
    is_wanted = _watch_turn(session_id)
    offset = arguments["offset"] if file_name else 0
    try:
        with file_search.take_turn(owner_id):
            if not question:
                return _read(project_id, file_name, offset)
            found = file_search.find_passages(
                project_id,
                question,
                file_name=file_name,
                offset=offset,
                limit=arguments["limit"],
                is_wanted=is_wanted,
            )
    except file_search.SearchesBusy:
        raise ToolError("Other searches are still going on. Search again, one at a time.") from None
    return _describe(found)


def _watch_turn(session_id: UUID) -> Callable[[], bool]:
    """Return what says whether the turn that asks is still running, if one does."""
    turns = Turn.objects.filter(session=session_id, status=Turn.Status.RUNNING)
    pks = list(turns.values_list("pk", flat=True))
    return turns.filter(pk__in=pks, cancel_requested=False).exists if pks else lambda: True


def _read(project_id: UUID, file_name: str, offset: int) -> str:
    passage = file_search.read_from(project_id, file_name, offset, READ_CHARS)
    if passage is None or not passage.text:
        raise ToolError(f"Offset {offset:,} is behind the end of {file_name!r}.")
    return f"{_describe_place(passage)}\n{passage.text}"


def _describe(found: FoundPassages) -> str:
    parts = [f"{_describe_place(each)}\n{each.text.strip()}" for each in found.passages]
    if not parts:
        parts = ["No passage holds any of these words. Try other words."]
    if found.unread:
        places = ", ".join(f"{name} from offset {start}" for name, start in found.unread.items())
        parts.append(f"[Not searched: {places}. To search there, name the file and the offset.]")
    return "\n\n".join(parts)


def _describe_place(passage: FilePassage) -> str:
    place = f"line {passage.line:,}" if passage.page is None else f"page {passage.page:,}"
    end = passage.offset + len(passage.text)
    return f"[{passage.file}, {place}, offset {passage.offset} to {end}]"


TOOL = BuiltInTool(
    name="search_project_files",
    description=(
        "Finds passages in the project's files, also in those that are not shown. Takes a question"
        ' in ordinary words; "quoted words" must stand in a passage as they are. Each passage'
        " begins with its place: quote it in the answer, with the file and the page or line. With"
        " a file and no query it reads the file from an offset on."
    ),
    parameters={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What to look for: a question, or the words to be expected.",
                "minLength": 1,
                "maxLength": MAX_QUESTION_CHARS,
            },
            "file": {
                "type": "string",
                "description": "Only in this file.",
                "minLength": 1,
                "maxLength": 255,
            },
            "offset": {
                "type": "integer",
                "description": "First character of the file that is read or searched.",
                "default": 0,
                "minimum": 0,
                "maximum": 2**31 - 1,
            },
            "limit": {
                "type": "integer",
                "description": "How many passages at most.",
                "default": 6,
                "minimum": 1,
                "maximum": 20,
            },
        },
        "additionalProperties": False,
    },
    run=run,
)
