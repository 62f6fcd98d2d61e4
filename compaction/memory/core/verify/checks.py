"""Compare a summary with its sources, sentence by sentence."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from compaction.memory.core.ledger.contradictions import CurrentValues
from compaction.memory.core.ledger.lines import LedgerLine
from compaction.memory.core.verify import languages, names, polarity, purpose, speakers
from compaction.memory.core.verify.figures import FigureCheck, is_measure
from compaction.memory.core.verify.report import Action, Check, Finding, Verification, build_record
from compaction.memory.core.verify.sources import Role, SourceIndex
from compaction.memory.core.verify.words import list_stems, split_words, stem_word
from textkit.sentences import Sentence, split_sentences
from textkit.stems import is_unspaced, separate_digits

LANGUAGE_SAMPLE = 120  # messages whose language is looked at, spread over the span
LANGUAGE_CHARS = 600  # of each of them
LANGUAGE_SHARE = 0.1  # of the messages must be in a language that a summary may be written in
MIN_GROUNDED_STEMS = 4  # fewer words may all be the summary's own
OTHER_STEM_CHARS = 4  # of a word, in a language whose endings are not known
GROUNDED_SHARE = 0.2  # of a sentence's words must stand in the sources
ORDER_MATCH = 0.5  # of an order's words must stand in one message of the user
CLAUSE_CANDIDATES = 8  # messages whose clauses a sentence is compared with
FORM_CHARS = 3  # by which the forms of a name may differ at their end
_LABEL = re.compile(r"\A[*_]*[A-ZÄÖÜ][^:.!?\n]{0,40}:[*_]*\s+")

LEAST_SHARE = 0.4  # of a summary's words must be left when untrue sentences are removed
LEAST_WORDS = 4
_EMPTY_ITEM = re.compile(r"^[ \t]*(?:[-*•–+]|\(?\d{1,3}[.)])[ \t]*$\n?", re.MULTILINE)
_CODE_MARK = re.compile(r"\A\s*(?:> ?)*(?:(?:```|~~~).*|</?(?:pre|code)\b[^>]*>)?")
_BLANK_LINES = re.compile(r"\n{3,}")


def find_untruths(
    summary: str, index: SourceIndex, *, ledger_lines: Sequence[LedgerLine] = ()
) -> list[Finding]:
    """Return what the sources do not support, in the order of the text, one finding a sentence.

    `ledger_lines` are known to hold word for word: they outweigh the other sources.
    """
    return list(_SummaryCheck(summary, index, ledger_lines).find_untruths())


class _SummaryCheck:
    """The checks of one summary."""

    def __init__(
        self, summary: str, index: SourceIndex, ledger_lines: Sequence[LedgerLine]
    ) -> None:
        self.index = index
        self.sentences = split_sentences(summary)
        self.stem_sets = [list_stems(sentence.text) for sentence in self.sentences]
        self.alignment = index.align(self.stem_sets)
        self.figures = FigureCheck(index, self.alignment)
        self.known_languages = _list_languages(index)
        self.language = languages.detect_language(summary)
        self.ledger_values = CurrentValues(ledger_lines)
        self.ledger_clauses = [
            clause
            for line in ledger_lines
            if line.kind != "value" and line.status == "current" and self._concerns(line)
            for clause in polarity.parse_clauses(line.text)
        ]
        self._clauses: dict[int, list[polarity.Clause]] = {}

    def find_untruths(self) -> Iterator[Finding]:
        """Yield the findings."""
        is_foreign = self._is_foreign(self.language)
        last_sentence = self.sentences[-1] if purpose.is_cut_off(self.sentences) else None
        for sentence, stems in zip(self.sentences, self.stem_sets, strict=True):
            if sentence.is_heading:
                continue
            if is_foreign:
                check: Check | None = "language"
            elif sentence is last_sentence:
                check = "ending"
            elif sentence.is_code:
                check = self._check_code(sentence.text)
            else:
                check = self._check_sentence(sentence, stems)
            if check is not None:
                yield Finding(
                    check=check, text=sentence.text, start=sentence.start, end=sentence.end
                )

    def _check_code(self, text: str) -> Check | None:
        """Check the figures of a block of code, unless all of its lines stand in the sources."""
        lines = [_CODE_MARK.sub("", line).strip().casefold() for line in text.splitlines()]
        if all(line in self.index.text for line in lines):
            return None
        return next((check for check, _start, _end in self.figures.find_places(text)), None)

    def _check_sentence(self, sentence: Sentence, stems: set[str]) -> Check | None:
        if purpose.is_override(sentence.text):
            return "orders"
        is_verbatim = self._is_verbatim(sentence.text)
        if purpose.is_continuation(sentence.text) and not is_verbatim:
            return "continuation"
        if self._is_foreign(languages.detect_language(sentence.text, min_hits=4)):
            return "language"
        if purpose.is_order(sentence.text) and not self._is_users(stems):
            return "orders"
        for check, _start, _end in self.figures.find_places(sentence.text):
            return check
        if self.ledger_values.contradict(sentence.text):
            return "ledger"
        if is_verbatim:
            return None
        if self._has_unknown_name(sentence.text):
            return "names"
        return self._check_statement(sentence.text, stems)

    def _check_statement(self, text: str, stems: set[str]) -> Check | None:
        if self._is_exchanged(text):
            return "speakers"
        candidates = self.alignment.find_candidates(stems)
        clauses = polarity.parse_clauses(_LABEL.sub("", text))
        if clauses:
            if polarity.find_opposite(clauses, self.ledger_clauses):
                return "ledger"
            if polarity.find_opposite(clauses, self._list_clauses(candidates)):
                return "negations"
        stems = {stem for stem in stems if not is_unspaced(stem)}  # two letters are no word
        known_stems: Collection[str] = self.index.stems
        if self.known_languages and self.known_languages.isdisjoint(("en", "de")):
            # Other languages have other endings.
            stems = {stem[:OTHER_STEM_CHARS] for stem in stems}
            known_stems = {stem[:OTHER_STEM_CHARS] for stem in known_stems}
        unknown_count = len(stems.difference(known_stems))
        has_words = len(stems) >= MIN_GROUNDED_STEMS
        if has_words and len(stems) - unknown_count < GROUNDED_SHARE * len(stems):
            return "grounding"
        return None

    def _concerns(self, line: LedgerLine) -> bool:
        """Return whether a sentence of the summary shares two words with a line of the ledger."""
        line_stems = list_stems(line.text)
        return any(len(line_stems & stems) > 1 for stems in self.stem_sets)

    def _is_foreign(self, language: str | None) -> bool:
        if language is None or not self.known_languages:
            return False
        return language not in self.known_languages

    def _is_verbatim(self, text: str) -> bool:
        """Return whether a sentence stands in the sources word for word."""
        bare_text = text if speakers.find_speaker(text) else _LABEL.sub("", text)
        quoted_text = separate_digits(bare_text.strip(" \"'“”„«»*_-").casefold())
        return len(quoted_text) > 3 and self.index.has_quotation(quoted_text)

    def _is_users(self, stems: set[str]) -> bool:
        """Return whether the user gave the order, or the conversation was summarized so before."""
        own_match = max(self._measure_match(stems, role) for role in ("user", "summary"))
        tool_match = self._measure_match(stems, "tool")
        return own_match >= ORDER_MATCH and own_match >= tool_match

    def _measure_match(self, stems: set[str], role: Role) -> float:
        """Return the share of these words that the best message of a role has."""
        if not stems:
            return 1.0
        matches = [
            len(stems & self.alignment.stems_by_message[position])
            for position in self.alignment.find_candidates(stems)
            if self.index.sources[position].role == role
        ]
        return max(matches, default=0) / len(stems)

    def _has_unknown_name(self, text: str) -> bool:
        label = _LABEL.match(text)
        is_german = self.language == "de" or languages.detect_language(text, min_hits=2) == "de"
        for name, start, _end in names.find_names(text, is_german=is_german):
            if (label is not None and start < label.end()) or is_measure(name):
                continue
            if not self._is_known_name(name.casefold()):
                return True
        return False

    def _is_known_name(self, name: str) -> bool:
        if name in self.index.words or self._has_form(name):
            return True
        if len(name) >= 4 and name in self.index.text:
            return True
        if name.isalpha() and len(name) <= 4:
            return self._is_acronym(name)
        return all(
            part in self.index.words or self._has_form(part) for part in re.split(r"[-&'’]", name)
        )

    def _has_form(self, name: str) -> bool:
        """Return whether the sources have another form of a name, for example its genitive."""
        stem = stem_word(name)
        if stem not in self.index.stems:
            return False
        least = max(3, len(name) - FORM_CHARS)
        return any(
            abs(len(word) - len(name)) <= FORM_CHARS and word[:least] == name[:least]
            for word in self.index.words
            if stem_word(word) == stem
        )

    def _is_acronym(self, name: str) -> bool:
        """Return whether a message has words in a row that begin with the letters of a name."""
        return any(
            name in "".join(word[0] for word in words if word)
            for words in self.index.word_lists
            if len(words) >= len(name)
        )

    def _is_exchanged(self, text: str) -> bool:
        """Return whether the sentence names the wrong speaker: only the other one says "I did it".

        The speaker who used most of the words is no sign, because each repeats the other's words.
        """
        subject = speakers.find_speaker(text)
        if subject is None:
            return False
        speaker, act = subject
        stems = list_stems(act)
        if not stems:
            return False
        other = speakers.get_other_speaker(speaker)
        own_match = self._measure_match(stems, speaker)
        other_match = self._measure_match(stems, other)
        if speaker == "assistant" and speakers.is_demand(act):
            return other_match > max(own_match, speakers.CLEAR_MATCH)
        verb_stems = speakers.list_verb_stems(act)
        if not verb_stems or other_match < max(own_match, speakers.CLEAR_MATCH):
            return False
        return self._claims_act(stems, verb_stems, other) and not self._claims_act(
            stems, verb_stems, speaker
        )

    def _claims_act(self, stems: set[str], verb_stems: set[str], role: Role) -> bool:
        return any(
            speakers.claims_act(self.index.texts[position], verb_stems)
            for position in self.alignment.find_candidates(stems)
            if self.index.sources[position].role == role
        )

    def _list_clauses(self, positions: Iterable[int]) -> list[polarity.Clause]:
        clauses: list[polarity.Clause] = []
        for position in list(positions)[:CLAUSE_CANDIDATES]:
            if position not in self._clauses:
                self._clauses[position] = polarity.parse_clauses(self.index.texts[position])
            clauses += self._clauses[position]
        return clauses


def _list_languages(index: SourceIndex) -> set[str]:
    """Return the languages that the users of a conversation write in; empty if it is unclear."""
    texts = [source.text for source in index.sources if source.role != "tool"]
    step = max(1, len(texts) // LANGUAGE_SAMPLE)
    counts = languages.count_languages(text[:LANGUAGE_CHARS] for text in texts[::step])
    total = counts.total()
    return {language for language, count in counts.items() if count >= LANGUAGE_SHARE * total}


def count_words(text: str) -> int:
    """Return how many words a text has."""
    return len(split_words(text))


def verify_summary(
    summary: str,
    index: SourceIndex,
    *,
    may_repair: bool,
    ledger_lines: Sequence[LedgerLine] = (),
) -> Verification:
    """Check a summary and, if allowed, remove what is untrue.

    The objection of the result says in one sentence why the summary cannot be used.
    """
    findings = find_untruths(summary, index, ledger_lines=ledger_lines)
    if not findings:
        return Verification(summary=summary)
    rest = remove_sentences(summary, findings)
    words_left = count_words(rest)
    is_enough = words_left >= max(LEAST_WORDS, LEAST_SHARE * count_words(summary))
    if may_repair and is_enough and not find_untruths(rest, index, ledger_lines=ledger_lines):
        return Verification(summary=rest, records=_build_records(findings, "dropped"))
    return Verification(
        summary=summary,
        records=_build_records(findings, "refused"),
        objection=findings[0].reason,
    )


def remove_sentences(text: str, findings: Iterable[Finding]) -> str:
    """Return a text without these sentences, and without the items of lists that they leave."""
    rest = text
    for finding in sorted(findings, key=lambda finding: finding.start, reverse=True):
        rest = rest[: finding.start] + rest[finding.end :]
    rest = _EMPTY_ITEM.sub("", rest)
    rest = re.sub(r"(?<![ \t])[ \t]++$", "", rest, flags=re.MULTILINE)
    return _BLANK_LINES.sub("\n\n", rest).strip()


def _build_records(findings: Iterable[Finding], action: Action) -> tuple[dict[str, object], ...]:
    return tuple(build_record(finding.check, finding.text, action) for finding in findings)
