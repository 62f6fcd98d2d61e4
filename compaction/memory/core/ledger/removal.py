"""Leave what the user wants forgotten out of texts: of messages, summaries and extracts."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from compaction.memory.core.ledger.corrections import (
    SUBJECT_SHARE,
    Place,
    find_change,
    find_forgotten,
    find_language,
    get_place,
    list_request_subject,
    list_subject,
    list_things,
    list_values,
    tie_corrections,
)
from compaction.memory.core.ledger.lines import LedgerLine, normalize_text
from compaction.memory.core.ledger.merging import merge_lines
from compaction.memory.core.ledger.recognition import recognize_lines
from textkit.sentences import split_sentences

REPLY_MESSAGES = 4  # behind a request to forget: its reply may repeat what it is about
ECHO_SHARE = 0.5  # of a sentence's words that only forgotten statements have


def read_statements(messages: Iterable[tuple[int, str]]) -> list[LedgerLine]:
    """Return each sentence of the user's messages, which come with their numbers, as a line."""
    return [
        LedgerLine(kind="value", text=" ".join(each.text.split()), seq=seq, role="user", key="")
        for seq, text in messages
        for each in split_sentences(text)
        if not each.is_code and each.text.strip()
    ]


def find_newer(statements: Sequence[LedgerLine]) -> dict[LedgerLine, LedgerLine]:
    """Return for each corrected statement the newest one that corrects it or its correction."""
    by_place = {get_place(line): line for line in statements}
    newer: dict[LedgerLine, LedgerLine] = {}
    for place, tie in tie_corrections(statements).items():
        newer[tie.line] = by_place[place]
    recognized = [
        line
        for statement in statements
        for line in recognize_lines(statement.text, role="user", seq=statement.seq)
    ]
    merged = merge_lines((), recognized)
    current = {(line.kind, line.seq, line.key): line for line in merged}
    for line in merged:
        if line.status == "superseded" and get_place(line) in by_place:
            other = current.get((line.kind, line.superseded_by or 0, line.key))
            if other and get_place(other) in by_place and _has_new_value(line, other):
                newer.setdefault(by_place[get_place(line)], by_place[get_place(other)])
    return {line: _follow(next_line, newer) for line, next_line in newer.items()}


def _has_new_value(line: LedgerLine, newer: LedgerLine) -> bool:
    """Return whether a later message gives another value in a sentence about the same."""
    if newer.seq == line.seq or normalize_text(line.text) == normalize_text(newer.text):
        return False
    subjects = (list_subject(line.text), list_subject(newer.text))
    return len(subjects[0] & subjects[1]) > SUBJECT_SHARE * min(map(len, subjects))


def _follow(line: LedgerLine, newer: Mapping[LedgerLine, LedgerLine]) -> LedgerLine:
    while line in newer and newer[line].seq > line.seq:
        line = newer[line]
    return line


def describe_correction(new: LedgerLine, old: LedgerLine) -> str:
    """Return a correction with what it corrects behind it."""
    return f"{new.text} (was: “{old.text}” [message {old.seq}])"


class Removal:
    """Removes what the user said and wants forgotten.

    `statements` are the user's, in order. `excluded_places` are those of requests that the user
    took back.
    """

    def __init__(
        self, statements: Sequence[LedgerLine], excluded_places: Collection[Place] = ()
    ) -> None:
        statements = [line for line in statements if get_place(line) not in excluded_places]
        self._forgotten = find_forgotten(statements)
        self.last_seq = max(self._forgotten.values(), default=0)
        request_seqs = set(self._forgotten.values())
        languages = (find_language(each.text) for each in statements if each.seq in request_seqs)
        self._language = next(filter(None, languages), "")
        self._things: set[str] = set()
        self._values: set[str] = set()
        self._subjects: list[tuple[frozenset[str], int, int]] = []
        if self._forgotten:  # else there is no need to read each statement for its words
            self._gather_words(statements)
            self._subjects = list(self._list_subjects(statements))

    def __bool__(self) -> bool:
        return bool(self._forgotten)

    def clean(self, text: str, *, seq: int = 0, role: str = "assistant") -> str:
        """Return the text of a message without the sentences that say what is forgotten.

        `seq` is 0 for a text that is of several messages, as a summary.
        """
        if not self or seq > self.last_seq + REPLY_MESSAGES:
            return text
        parts: list[str] = []
        end = 0
        for sentence in split_sentences(text):
            if self.says_forgotten(sentence.text, seq=seq, role=role):
                parts.append(text[end : sentence.start].rstrip(" -*•"))
                end = sentence.end
        return "".join([*parts, text[end:]]).strip("\n") if end else text

    def says_forgotten(self, sentence: str, *, seq: int = 0, role: str = "assistant") -> bool:
        """Return whether a sentence says what the user wants forgotten."""
        if not self or find_change(sentence) == "forgetting":
            return False
        things = list_things(sentence, self._language)
        if not things:
            return False
        if role == "user" and seq:
            place = (seq, normalize_text(" ".join(sentence.split())))
            return place in self._forgotten or self._is_of_subject(things, seq)
        if not self._values.isdisjoint(things):
            return True
        if role == "tool":
            return False
        is_echo = len(things & self._things) >= len(things) * ECHO_SHARE
        return is_echo or self._is_of_subject(things, max(0, seq - REPLY_MESSAGES))

    def _gather_words(self, statements: Sequence[LedgerLine]) -> None:
        """Note the words and values that only forgotten statements have."""
        kept: set[str] = set()
        for line in statements:
            if get_place(line) in self._forgotten:
                self._things |= list_things(line.text, self._language)
                self._values |= list_values(line.text)
            elif find_change(line.text) != "forgetting":
                kept |= list_things(line.text, self._language)
        self._things -= kept
        self._values -= kept

    def _is_of_subject(self, things: Collection[str], seq: int) -> bool:
        return any(
            seq < request_seq and len(subject.intersection(things)) >= count
            for subject, count, request_seq in self._subjects
        )

    def _list_subjects(
        self, statements: Sequence[LedgerLine]
    ) -> Iterable[tuple[frozenset[str], int, int]]:
        """Yield what each request is about, the words that are enough of it, and its message.

        What the user speaks of again is not removed from other texts.
        """
        request_seqs = set(self._forgotten.values())
        for line in statements:
            if line.seq not in request_seqs or find_change(line.text) != "forgetting":
                continue
            language = find_language(line.text)
            if language != self._language:
                continue  # its words are compared in another way
            subject = list_request_subject(line.text)
            counts = [
                len(subject & list_things(other.text, self._language))
                for other in statements
                if self._forgotten.get(get_place(other)) == line.seq
            ]
            count = max(counts, default=0)
            is_told_again = any(
                other.seq > line.seq
                and find_change(other.text) != "forgetting"
                and len(subject & list_things(other.text, self._language)) >= count
                for other in statements
            )
            if count > len(subject) * SUBJECT_SHARE and not is_told_again:
                yield subject, count, line.seq


class TakenBack:
    """What the user took back of these statements: what to forget, and what is corrected."""

    def __init__(
        self, statements: Sequence[LedgerLine] = (), excluded_places: Collection[Place] = ()
    ) -> None:
        self.removal = Removal(statements, excluded_places)
        self.newer = {
            old: new
            for old, new in find_newer(statements).items()
            if not self.removal.says_forgotten(old.text, seq=old.seq, role="user")
        }
        self.requests = [
            line
            for line in statements
            if get_place(line) not in excluded_places and find_change(line.text) == "forgetting"
        ]

    def list_changes(self) -> list[str]:
        """Return what the summarizer is to observe, the newest last."""
        lines = [(line.seq, line.text) for line in self.requests]
        lines += [(new.seq, describe_correction(new, old)) for old, new in self.newer.items()]
        return [f"- [message {seq}] {text}" for seq, text in sorted(lines)]

    def list_missing_corrections(self, summary: str) -> list[str]:
        """Return the corrections of which a summary has the older value and not the newer one."""
        values = {value for each in split_sentences(summary) for value in list_values(each.text)}
        return [
            f"- [message {new.seq}] {describe_correction(new, old)}"
            for old, new in self.newer.items()
            if values & (list_values(old.text) - list_values(new.text))
            and not list_values(new.text) - list_values(old.text) <= values
        ]
