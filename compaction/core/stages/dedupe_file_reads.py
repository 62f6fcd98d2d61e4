"""Of several reads of one file keep the latest, and refer the others to it."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from compaction.core.stages.base import ContextDraft, PassContext, apply_edits, count_savings
from compaction.core.tool_pairs import find_pairs
from compaction.core.transcript import TranscriptCall, TranscriptEntry

_PATH_ARGUMENTS = (
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
_PART_WORDS = frozenset(
    "offset limit start end line range head tail page from to first last max skip chunk length count size byte".split()  # noqa: RUF100, SIM905
)


@dataclass(frozen=True, slots=True)
class _FileRead:
    """A whole file as a tool gave it: `key` is equal for reads that give the same."""

    key: str
    path: str
    entry: TranscriptEntry


def dedupe_file_reads(draft: ContextDraft, pass_context: PassContext) -> ContextDraft:
    """Looks at tool calls and their arguments, never at prose (traps, 15). A file whose reads would shrink too little stays as it is."""
    reads_by_file: dict[str, list[_FileRead]] = {}
    for file_read in _find_reads(draft.transcript.entries, pass_context):
        reads_by_file.setdefault(file_read.key, []).append(file_read)
    texts_by_file = {
        file: _build_references(reads, pass_context)
        for file, reads in reads_by_file.items()
        if len(reads) > 1
    }
    full_draft = apply_edits(
        draft, pass_context, "deduplicated", _merge_texts(texts_by_file.values())
    )
    savings = count_savings(draft, full_draft)
    worthwhile_texts = [
        texts_by_file[file]
        for file in texts_by_file
        if sum(savings.get(file_read.entry.seq, 0) for file_read in reads_by_file[file])
        >= pass_context.policy.dedupe.minimum_ratio
        * sum(file_read.entry.tokens for file_read in reads_by_file[file])
    ]
    return (
        full_draft
        if len(worthwhile_texts) == len(texts_by_file)
        else apply_edits(draft, pass_context, "deduplicated", _merge_texts(worthwhile_texts))
    )


def parse_whole_read(call: TranscriptCall) -> tuple[str, str] | None:
    """The path that a call reads, and what makes two calls the same; None where it names no file, or asks for a part of one."""
    try:
        arguments = json.loads(call.arguments)
        values = (
            {name: value for name, value in arguments.items() if value is not None}
            if isinstance(arguments, dict)
            else {}
        )
        name = next(
            (
                name
                for name in _PATH_ARGUMENTS
                if isinstance(values.get(name), str) and values[name].strip()
            ),
            None,
        )
        if name is None or any(
            _is_part(argument_name) for argument_name in values if argument_name != name
        ):
            return None
        path = normalize_path(values.pop(name))
        return path, json.dumps([path, values], sort_keys=True)
    except (ValueError, RecursionError):
        return None


def normalize_path(path: str) -> str:
    """One spelling of a path, without what cannot be printed: `./a//b/../c` is `a/c`. Case and a leading slash make a difference."""
    clean_path = "".join(
        letter for letter in path.strip().replace("\\", "/") if letter.isprintable()
    )
    steps: list[str] = []
    for step in clean_path.split("/"):
        if step == ".." and steps and steps[-1] != "..":
            steps.pop()
        elif step not in ("", ".") and not (step == ".." and clean_path.startswith("/")):
            steps.append(step)
    return ("/" if clean_path.startswith("/") else "") + "/".join(steps)


def _find_reads(
    entries: Sequence[TranscriptEntry], pass_context: PassContext
) -> Iterator[_FileRead]:
    """The whole reads in the order of their results, without errors and without what an edit has shortened already."""
    tools = frozenset(pass_context.policy.dedupe.tools)
    for caller, result in sorted(find_pairs(entries), key=lambda pair: pair[1]):
        entry = entries[result]
        is_shortened = entry.original is not None and len(entry.content) < len(entry.original)
        read_call = next(
            (
                call
                for call in entries[caller].calls
                if call.id == entry.call_id and call.name in tools
            ),
            None,
        )
        path_and_key = (
            None
            if read_call is None or entry.is_error or is_shortened
            else parse_whole_read(read_call)
        )
        if path_and_key:
            yield _FileRead(path_and_key[1], path_and_key[0], entry)


def _build_references(reads: Sequence[_FileRead], pass_context: PassContext) -> dict[int, str]:
    placeholder = pass_context.policy.dedupe.placeholder
    return {
        file_read.entry.seq: placeholder.format(path=file_read.path)
        for file_read in reads[:-1]
        if not pass_context.protection.covers(file_read.entry)
    }


def _merge_texts(texts: Any) -> dict[int, str]:
    return {seq: text for part in texts for seq, text in part.items()}


def _is_part(name: str) -> bool:
    """Whether an argument's name says that it asks for a part: `offset`, `view_range`, `startLine`."""
    words = (
        "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
        .replace("-", "_")
        .split("_")
    )
    return any(word.rstrip("s") in _PART_WORDS for word in words)
