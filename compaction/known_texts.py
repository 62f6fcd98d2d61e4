"""The words that policies put into requests, to tell an import's own from a stranger's.

They stand outside the envelope of a summary, or in the place of a message, where nobody looks.
"""

import re
import string
from collections.abc import Iterator

from compaction import policies
from compaction.core.policy import Policy

_NUMBER = r"[\d.,]{1,20}"
_PATH = r"\S{1,300}"


def is_known_text(text: str, *, original: str = "") -> bool:
    """Return True if a policy could have written this in the place of the original.

    That is one of its texts, or one of them between the beginning and the end of the original.
    """
    if text in ("", original):
        return True
    patterns = {
        pattern
        for policy in policies.list_policies().values()
        for pattern in _list_patterns(policy)
    }
    return any(
        original.startswith(text[: match.start()].rstrip())
        and original.endswith(text[match.end() :].lstrip())
        for pattern in patterns
        for match in re.finditer(pattern, text)
    )


def _list_patterns(policy: Policy) -> Iterator[str]:
    texts = (
        policy.inject.heading,
        policy.inject.nudge,
        policy.inject.failure_nudge,
        policy.slide.marker,
        policy.strip.placeholder,
        policy.strip.other_placeholder,
        policy.prune.placeholder,
    )
    yield from (re.escape(text.strip()) for text in texts if text.strip())
    for template in (policy.dedupe.placeholder, policy.excerpt.marker):
        yield _convert_template(template.strip())


def _convert_template(template: str) -> str:
    parts = []
    for text, name, _, _ in string.Formatter().parse(template):
        parts.append(re.escape(text))
        if name is not None:
            parts.append(_PATH if name == "path" else _NUMBER)
    return "".join(parts)
