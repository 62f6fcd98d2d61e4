"""Of several reads of one file, keep the latest and replace the others by a reference to it."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from compaction.core.tool_pairs import find_pairs
from compaction.core.transcript import TranscriptCall, TranscriptEntry
from compaction.systems.kit.drafts import ContextDraft, StageContext, apply_edits, count_savings
from compaction.systems.kit.pipeline import add_stage
from compaction.systems.neurolink.settings import DedupeKnobs

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
# An argument with one of these words in its name asks for a part of a file.
_PART_WORDS = frozenset(
    {
        "offset",
        "limit",
        "start",
        "end",
        "line",
        "range",
        "head",
        "tail",
        "page",
        "from",
        "to",
        "first",
        "last",
        "max",
        "skip",
        "chunk",
        "length",
        "count",
        "size",
        "byte",
    }
)


@dataclass(frozen=True, slots=True)
class _FileRead:
    """The result of a tool that read a whole file. Reads of the same content have the same key."""

    key: str
    path: str
    entry: TranscriptEntry


def dedupe_file_reads(draft: ContextDraft, context: StageContext) -> ContextDraft:
    """Replace all but the latest read of each file by a reference, if that saves enough.

    Only tool calls and their arguments are examined, never the text of messages: a user or a model
    that merely mentions a path has not read the file. The policy's minimum holds for each file.
    (NeuroLink, Stage 2: File Read Deduplication)
    """
    reads_by_file: dict[str, list[_FileRead]] = {}
    for file_read in _find_reads(draft.transcript.entries, context):
        reads_by_file.setdefault(file_read.key, []).append(file_read)
    texts_by_file = {
        file: _build_references(reads, context)
        for file, reads in reads_by_file.items()
        if len(reads) > 1
    }
    # What a file saves is known only when its placeholders are counted, so all are tried first.
    full_draft = apply_edits(draft, context, "deduplicated", _merge_texts(texts_by_file.values()))
    savings = count_savings(draft, full_draft)
    minimum_ratio = context.policy.get(DedupeKnobs).minimum_ratio
    worthwhile_texts = [
        texts
        for file, texts in texts_by_file.items()
        if _saves_enough(reads_by_file[file], savings, minimum_ratio)
    ]
    if len(worthwhile_texts) == len(texts_by_file):
        return full_draft
    return apply_edits(draft, context, "deduplicated", _merge_texts(worthwhile_texts))


def parse_whole_read(call: TranscriptCall) -> tuple[str, str] | None:
    """Return the path that a call reads, and the key that equal calls share.

    Returns None if the call names no file, or asks for a part of one.
    """
    try:
        arguments = json.loads(call.arguments)
        if not isinstance(arguments, dict):
            return None
        values = {name: value for name, value in arguments.items() if value is not None}
        path_name = _find_path_argument(values)
        if path_name is None:
            return None
        path = normalize_path(values.pop(path_name))
        if any(_names_part(name) for name in values):
            return None
        return path, json.dumps([path, values], sort_keys=True)
    except (ValueError, RecursionError):
        return None


def normalize_path(path: str) -> str:
    """Return one spelling of a path, without unprintable characters: `./a//b/../c` is `a/c`.

    Case and a leading slash are significant.
    """
    letters = (letter for letter in path.strip().replace("\\", "/") if letter.isprintable())
    clean_path = "".join(letters)
    is_absolute = clean_path.startswith("/")
    steps: list[str] = []
    for step in clean_path.split("/"):
        if step in ("", "."):
            continue
        if step != "..":
            steps.append(step)
        elif steps and steps[-1] != "..":
            steps.pop()
        elif not is_absolute:
            steps.append(step)
    return ("/" if is_absolute else "") + "/".join(steps)


def _find_reads(entries: Sequence[TranscriptEntry], context: StageContext) -> Iterator[_FileRead]:
    """Yield the reads of whole files in the order of their results.

    Errors, and results that an edit has already shortened, are left out.
    """
    tools = frozenset(context.policy.get(DedupeKnobs).tools)
    for caller, result in find_pairs(entries):
        entry = entries[result]
        is_shortened = entry.original is not None and len(entry.content) < len(entry.original)
        if entry.is_error or is_shortened:
            continue
        for call in entries[caller].calls:
            if call.id != entry.call_id or call.name not in tools:
                continue
            path_and_key = parse_whole_read(call)
            if path_and_key:
                path, key = path_and_key
                yield _FileRead(key, path, entry)
            break


def _build_references(reads: Sequence[_FileRead], context: StageContext) -> dict[int, str]:
    placeholder = context.policy.get(DedupeKnobs).placeholder
    return {
        file_read.entry.seq: placeholder.format(path=file_read.path)
        for file_read in reads[:-1]
        if not context.protection.covers(file_read.entry)
    }


def _saves_enough(
    reads: Sequence[_FileRead], savings: Mapping[int, int], minimum_ratio: float
) -> bool:
    saved_tokens = sum(savings.get(file_read.entry.seq, 0) for file_read in reads)
    total_tokens = sum(file_read.entry.tokens for file_read in reads)
    return saved_tokens >= minimum_ratio * total_tokens


def _merge_texts(texts_by_file: Iterable[Mapping[int, str]]) -> dict[int, str]:
    return {seq: text for texts in texts_by_file for seq, text in texts.items()}


def _find_path_argument(values: Mapping[str, object]) -> str | None:
    for name in _PATH_ARGUMENTS:
        value = values.get(name)
        if isinstance(value, str) and value.strip():
            return name
    return None


def _names_part(name: str) -> bool:
    """Return whether an argument's name asks for a part: `offset`, `view_range`, `startLine`."""
    snake_case = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
    words = snake_case.replace("-", "_").split("_")
    return any(word.rstrip("s") in _PART_WORDS for word in words)


add_stage("dedupe_file_reads", dedupe_file_reads)
