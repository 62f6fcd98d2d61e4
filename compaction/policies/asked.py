"""What Chatcore asks a policy during a conversation."""

import re
import string
from collections.abc import Iterator
from dataclasses import dataclass, field

from django.core.exceptions import ValidationError

from chatcore.context import compactor as context_compactor
from chatcore.context.compactor import TruncatedOutput
from compaction.core import tool_output
from compaction.core.knobs import PolicyError, RecallKnobs
from compaction.core.policy import Policy

_NUMBER = r"[\d.,]{1,20}"
_PATH = r"\S{1,300}"


@dataclass(frozen=True)
class AskedPolicy(context_compactor.Policy):
    """A policy by its name."""

    name: str = field()  # no default, although the class above has a name
    policy: Policy

    @property
    def recall(self) -> RecallKnobs | None:
        """The knobs for recall; None if the policy brings nothing back."""
        return self.policy.recall if self.policy.recall.tokens else None

    def truncate_output(self, text: str) -> TruncatedOutput:
        """Cut a tool's output as the group `tool_result` says. Never raises.

        An import asks for each of its results, so this takes no query.
        """
        result = tool_output.truncate_output(text, self.policy.tool_result)
        keeps_full_text = self.policy.tool_result.spill and result.content != text
        full_text = text if keeps_full_text else None
        return TruncatedOutput(result.content, result.original_chars, full_text)

    def validate_threshold(self, threshold: float) -> None:
        """Refuse a session's own threshold if the policy cannot use it.

        Raises ValidationError, which names the field.
        """
        try:
            Policy.parse({"trigger": {"threshold": threshold}}, self.policy)
        except PolicyError as error:
            raise ValidationError({"compact_threshold": str(error)}) from None

    def may_have_written(self, text: str, *, original: str = "") -> bool:
        """Return True if the policy could have written this in the place of the original.

        That is one of its texts between the beginning and the end of the original.
        """
        return any(
            original.startswith(text[: match.start()].rstrip())
            and original.endswith(text[match.end() :].lstrip())
            for pattern in _list_patterns(self.policy)
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
