"""Of several reads of one file keep the latest, and refer the others to it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.core.stages.base import Draft, Work, saved, show
from compaction.core.tool_pairs import pairs
from compaction.core.transcript import Call, Entry

_PATHS = (
    "path",
    "file_path",
    "filePath",
    "filepath",
    "file",
    "filename",
    "file_name",
    "target_file",
    "absolute_path",
    "uri",
)
_PARTS = frozenset(
    "offset limit start end line range head tail page from to first last max skip chunk length count size byte".split()  # noqa: RUF100, SIM905
)


@dataclass(frozen=True, slots=True)
class _Read:
    """A whole file as a tool gave it: `key` is equal for reads that give the same."""

    key: str
    path: str
    entry: Entry


def dedupe_file_reads(draft: Draft, work: Work) -> Draft:
    """Looks at tool calls and their arguments, never at prose (traps, 15). A file whose reads would shrink too little stays as it is."""
    files: dict[str, list[_Read]] = {}
    for read in _reads(draft.transcript.entries, work):
        files.setdefault(read.key, []).append(read)
    texts = {file: _references(reads, work) for file, reads in files.items() if len(reads) > 1}
    everything = show(draft, work, "deduplicated", _joined(texts.values()))
    less = saved(draft, everything)
    worth = [
        texts[file]
        for file in texts
        if sum(less.get(read.entry.seq, 0) for read in files[file])
        >= work.policy.dedupe.minimum_ratio * sum(read.entry.tokens for read in files[file])
    ]
    return (
        everything
        if len(worth) == len(texts)
        else show(draft, work, "deduplicated", _joined(worth))
    )


def whole_file(call: Call) -> tuple[str, str] | None:
    """The path that a call reads, and what makes two calls the same; None where it names no file, or asks for a part of one."""
    try:
        arguments = json.loads(call.arguments)
        given = (
            {name: value for name, value in arguments.items() if value is not None}
            if isinstance(arguments, dict)
            else {}
        )
        name = next(
            (name for name in _PATHS if isinstance(given.get(name), str) and given[name].strip()),
            None,
        )
        if name is None or any(_is_part(other) for other in given if other != name):
            return None
        path = normal(given.pop(name))
        return path, json.dumps([path, given], sort_keys=True)
    except (ValueError, RecursionError):
        return None


def normal(path: str) -> str:
    """One spelling of a path, without what cannot be printed: `./a//b/../c` is `a/c`. Case and a leading slash make a difference."""
    words = "".join(letter for letter in path.strip().replace("\\", "/") if letter.isprintable())
    steps: list[str] = []
    for step in words.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in ("", ".") and not (step == ".." and words.startswith("/")):
            steps.append(step)
    return ("/" if words.startswith("/") else "") + "/".join(steps)


def _reads(entries: Sequence[Entry], work: Work) -> Iterator[_Read]:
    """The whole reads in the order of their results, without errors and without what an edit has shortened already."""
    tools = frozenset(work.policy.dedupe.tools)
    for caller, result in sorted(pairs(entries), key=lambda pair: pair[1]):
        entry = entries[result]
        shortened = entry.original is not None and len(entry.content) < len(entry.original)
        asked = next(
            (
                call
                for call in entries[caller].calls
                if call.id == entry.call_id and call.name in tools
            ),
            None,
        )
        read = None if asked is None or entry.is_error or shortened else whole_file(asked)
        if read:
            yield _Read(read[1], read[0], entry)


def _references(reads: Sequence[_Read], work: Work) -> dict[int, str]:
    placeholder = work.policy.dedupe.placeholder
    return {
        read.entry.seq: placeholder.format(path=read.path)
        for read in reads[:-1]
        if not work.protection.covers(read.entry)
    }


def _joined(texts: Any) -> dict[int, str]:
    return {seq: text for each in texts for seq, text in each.items()}


def _is_part(name: str) -> bool:
    """Whether an argument's name says that it asks for a part: `offset`, `view_range`, `startLine`."""
    words = (
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        .replace("-", "_")
        .split("_")
    )
    return any(word.rstrip("s") in _PARTS for word in words)
