"""Count the steps of a regular expression without a clock: a plain backtracking matcher.

It tries what Python's own engine tries, in the same order, without its shortcuts. What it cannot
know is only faster there.
"""

import re
import re._constants as op  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from typing import Any

Continue = Callable[[int], bool]
SINGLE = {op.LITERAL, op.NOT_LITERAL, op.ANY, op.IN}
CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


class TooManySteps(Exception):
    """The pattern has taken more steps than it may."""


def count_steps(pattern: re.Pattern[Any], text: str, *, anchored: bool, most: int) -> int:
    """Return how many steps all matches of the text take; `most` if it is at least so many."""
    matcher = _Matcher(pattern, text, most)
    try:
        matcher.run(anchored=anchored)
    except TooManySteps:
        return most
    return matcher.steps


def list_attacks(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """Return pairs of a text and of what is repeated behind it, so that a pattern tries in vain.

    Each part of the pattern that has no end is repeated: behind a text that matches what precedes
    it, and together with that text.
    """
    attacks = {("", unit) for unit in UNITS}
    for before, body in _list_repeats(list(_parse(pattern)), ""):
        unit = _sample(body) or " "
        attacks |= {(before, unit), ("", before + unit), ("", before or unit)}
    return sorted(attacks)


def build_attack(attack: tuple[str, str], length: int) -> str:
    """Return the hostile text of about this length; its end fits nothing."""
    before, unit = attack
    return before + (unit * length)[:length] + "\x00"


UNITS = (" ", "a", "0", "<", '"', "\n", "a ", ".")


@cache
def _parse(pattern: re.Pattern[Any]) -> Any:
    text = pattern.pattern
    if isinstance(text, bytes):
        return sre_parser.parse(text.decode("latin-1"), (pattern.flags | re.ASCII) & ~re.UNICODE)
    return sre_parser.parse(text, pattern.flags)


class _Matcher:
    def __init__(self, pattern: re.Pattern[Any], text: str, most: int) -> None:
        self.nodes = tuple(_parse(pattern))
        self.flags = pattern.flags
        self.text = text
        self.most = most
        self.steps = 0
        self.groups: dict[int, tuple[int, int]] = {}
        self.end = 0

    def run(self, *, anchored: bool) -> None:
        start = 0
        while start <= len(self.text):
            self.groups = {}
            found = self.match(self.nodes, 0, start, self._note_end)
            if anchored:
                return
            start = self.end if found and self.end > start else start + 1

    def _note_end(self, position: int) -> bool:
        self.end = position
        return True

    def count(self, steps: int = 1) -> None:
        self.steps += steps
        if self.steps >= self.most:
            raise TooManySteps

    def match(self, nodes: Any, index: int, at: int, then: Continue) -> bool:
        """Return whether the nodes from `index` on match at a position, and then the rest."""
        while index < len(nodes) and nodes[index][0] in SINGLE:
            self.count()
            if at >= len(self.text) or not _fits(nodes[index], self.text[at], self.flags):
                return False
            index, at = index + 1, at + 1
        if index == len(nodes):
            return then(at)
        self.count()
        kind, value = nodes[index]

        def rest(position: int) -> bool:
            return self.match(nodes, index + 1, position, then)

        return self._match_node(kind, value, at, rest)

    def _match_node(self, kind: Any, value: Any, at: int, rest: Continue) -> bool:
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            return self._repeat(kind, value, at, rest)
        if kind is op.SUBPATTERN:
            return self._group(value[0], tuple(value[3]), at, rest)
        if kind is op.BRANCH:
            return any(self.match(tuple(body), 0, at, rest) for body in value[1])
        if kind is op.ATOMIC_GROUP:
            end = self._find_end(tuple(value), at)
            return end is not None and rest(end)
        if kind in (op.ASSERT, op.ASSERT_NOT):
            holds = self._look(kind, value, at)
        elif kind is op.AT:
            holds = self._stands(value, at)
        else:
            return self._match_reference(kind, value, at, rest)
        return holds and rest(at)

    def _match_reference(self, kind: Any, value: Any, at: int, rest: Continue) -> bool:
        if kind is op.GROUPREF:
            start, end = self.groups.get(value, (0, -1))
            word = self.text[start:end]
            self.count(len(word))
            return end >= 0 and self.text.startswith(word, at) and rest(at + len(word))
        if kind is op.GROUPREF_EXISTS:
            group, body, other = value
            chosen = body if group in self.groups else other or ()
            return self.match(tuple(chosen), 0, at, rest)
        raise AssertionError(f"no pattern had {kind} before: have this matcher count its steps")

    def _repeat(self, kind: Any, value: Any, at: int, rest: Continue) -> bool:
        least, most, body = value[0], value[1], tuple(value[2])
        if len(body) == 1 and body[0][0] in SINGLE:
            return self._repeat_single(kind, least, most, body[0], at, rest)
        if kind is op.POSSESSIVE_REPEAT:
            count = 0
            while count < most:
                end = self._find_end(body, at)
                if end is None or (end == at and count >= least):
                    break
                at, count = end, count + 1
            return count >= least and rest(at)

        def again(position: int, count: int) -> bool:
            def more() -> bool:
                return count < most and self.match(
                    body, 0, position, lambda end: end != position and again(end, count + 1)
                )

            if count < least:
                return self.match(body, 0, position, lambda end: again(end, count + 1))
            if kind is op.MIN_REPEAT:
                return rest(position) or more()
            return more() or rest(position)

        return again(at, 0)

    def _repeat_single(
        self, kind: Any, least: int, most: int, node: Any, at: int, rest: Continue
    ) -> bool:
        longest = 0
        while longest < most and at + longest < len(self.text):
            self.count()
            if not _fits(node, self.text[at + longest], self.flags):
                break
            longest += 1
        if longest < least:
            return False
        if kind is op.POSSESSIVE_REPEAT:
            return rest(at + longest)
        counts = range(longest, least - 1, -1)
        return any(
            rest(at + count) for count in (counts if kind is op.MAX_REPEAT else counts[::-1])
        )

    def _group(self, group: int | None, body: Any, at: int, rest: Continue) -> bool:
        def close(end: int) -> bool:
            before = self.groups.get(group) if group is not None else None
            if group is not None:
                self.groups[group] = (at, end)
            if rest(end):
                return True
            if group is not None and before is not None:
                self.groups[group] = before
            return False

        return self.match(body, 0, at, close)

    def _find_end(self, body: Any, at: int) -> int | None:
        end = None

        def note_end(position: int) -> bool:
            nonlocal end
            end = position
            return True

        return end if self.match(body, 0, at, note_end) else None

    def _look(self, kind: Any, value: Any, at: int) -> bool:
        direction, body = value
        start = at if direction > 0 else at - body.getwidth()[0]
        found = start >= 0 and self.match(tuple(body), 0, start, lambda _: True)
        return found is (kind is op.ASSERT)

    def _stands(self, place: Any, at: int) -> bool:
        text = self.text
        if place in (op.AT_BEGINNING_STRING,) or (
            place is op.AT_BEGINNING and not self.flags & re.MULTILINE
        ):
            return at == 0
        if place is op.AT_BEGINNING:
            return at == 0 or text[at - 1] == "\n"
        if place is op.AT_END_STRING:
            return at == len(text)
        if place is op.AT_END:
            is_last = at == len(text) or (at == len(text) - 1 and text[at] == "\n")
            return is_last or (bool(self.flags & re.MULTILINE) and text[at] == "\n")
        is_word = [0 <= i < len(text) and _is_word(text[i]) for i in (at - 1, at)]
        return (is_word[0] != is_word[1]) is (place is op.AT_BOUNDARY)


@lru_cache(None)
def _is_word(character: str) -> bool:
    return bool(re.match(r"\w", character))


def _fits(node: Any, character: str, flags: int) -> bool:
    kind, value = node
    if kind is op.ANY:
        return character != "\n" or bool(flags & re.DOTALL)
    if kind is op.IN:
        return _fits_set(tuple(value), character, flags & re.IGNORECASE)
    is_same = character == chr(value) or (
        bool(flags & re.IGNORECASE) and character.lower() == chr(value).lower()
    )
    return is_same is (kind is op.LITERAL)


@lru_cache(None)
def _fits_set(items: Any, character: str, ignore_case: int) -> bool:
    is_negated = items[0][0] is op.NEGATE
    forms = {character, character.lower(), character.upper()} if ignore_case else {character}
    found = any(_is_in(item, form) for item in items for form in forms if len(form) == 1)
    return found is not is_negated


def _is_in(item: Any, character: str) -> bool:
    kind, value = item
    if kind is op.LITERAL:
        return ord(character) == value
    if kind is op.RANGE:
        return bool(value[0] <= ord(character) <= value[1])
    return kind is op.CATEGORY and bool(re.match(CATEGORIES[value], character))


def _list_repeats(nodes: list[Any], before: str) -> Iterator[tuple[str, list[Any]]]:
    """Yield the body of each repeat that has no end, with a text that matches what precedes it."""
    for node in nodes:
        kind, value = node
        bodies: list[Any] = []
        if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            bodies = [value[2]]
            if value[1] > 100:
                yield before, list(value[2])
        elif kind is op.SUBPATTERN:
            bodies = [value[3]]
        elif kind is op.BRANCH:
            bodies = value[1]
        elif kind is op.ATOMIC_GROUP:
            bodies = [value]
        elif kind in (op.ASSERT, op.ASSERT_NOT) and value[0] > 0:
            bodies = [value[1]]
        for body in bodies:
            yield from _list_repeats(list(body), before)
        before += _sample([node])


CANDIDATES = " a0A.\n,-:;\"'()[]{}<>/_#*=&%$@!?|\\^~+`“”…äß中。\t"


def _sample(nodes: list[Any]) -> str:
    """Return a short text that the nodes match, as far as a guess goes."""
    text = ""
    for kind, value in nodes:
        if kind is op.LITERAL:
            text += chr(value)
        elif kind in SINGLE:
            fitting = (sign for sign in CANDIDATES if _fits((kind, value), sign, 0))
            text += next(fitting, "")
        elif kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
            text += _sample(list(value[2])) * min(value[0], 3)
        elif kind is op.SUBPATTERN:
            text += _sample(list(value[3]))
        elif kind is op.BRANCH:
            text += _sample(list(value[1][0]))
        elif kind is op.ATOMIC_GROUP:
            text += _sample(list(value))
    return text
