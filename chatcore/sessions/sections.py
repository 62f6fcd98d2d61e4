"""What apps store beside a session, as sections of its export."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from functools import cache

from django.utils.module_loading import import_string

from chatcore.extension import get_extensions
from chatcore.models import Session


class SessionSection(ABC):
    """A list in the export of a session; `Extension.session_sections` names its class."""

    name: str

    @abstractmethod
    def export_items(self, session: Session) -> list[dict[str, object]]:
        """Return what is stored, as JSON values."""

    @abstractmethod
    def import_items(self, session: Session, items: Sequence[object]) -> None:
        """Store what `export_items` returned, after the summary, in the same transaction.

        Raises Django's ValidationError, which names the item and its field, as `[0].text`.
        """

    def find_violations(self, session: Session) -> Collection[str]:
        """Return a sentence for each stored row that breaks a rule."""
        return ()


@cache
def load_sections() -> tuple[SessionSection, ...]:
    """Return the sections of the installed apps."""
    paths = [path for each in get_extensions() for path in each.session_sections]
    return tuple(import_string(path)() for path in paths)
