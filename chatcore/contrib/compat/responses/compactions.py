"""Compact by the standard: runs of our engine, and the sealed items that stand for their result.

An item says which session it is of, up to which message, and what its summary was. It is encrypted,
so that nobody can change or read it; its owner reads the run over REST.
"""

import json
from dataclasses import asdict, dataclass, field
from uuid import UUID

from django.contrib.auth.models import User

from chatcore.base.rest.problems import InvalidFieldError
from chatcore.base.rest.routes import get_base_path
from chatcore.context.compactor import CompactionReport, get_compactor
from chatcore.models import Session
from models_registry import keys


@dataclass(frozen=True, kw_only=True)
class Seal:
    """What a compaction item holds."""

    owner: str
    session: str
    seq: int
    summary: str = ""
    run: str = ""
    system_texts: list[str] = field(default_factory=list)

    @property
    def session_id(self) -> UUID:
        """The session that was compacted."""
        return UUID(self.session)


def compact_session(session: Session, *, instructions: str = "") -> CompactionReport | None:
    """Compact a session now, as far as its policy can; None without a compactor."""
    report = get_compactor().compact_session(session, instructions=instructions)
    session.refresh_from_db()
    return report


def is_over(session: Session, threshold: int) -> bool:
    """Return True if the next request of the session has at least so many tokens."""
    return get_compactor().estimate_tokens(session) >= threshold


def write_seal(
    session: Session, *, seq: int, system_texts: list[str], report: CompactionReport | None
) -> str:
    """Return the content of the item for a session up to a message."""
    seal = Seal(
        owner=str(session.owner_id),
        session=str(session.pk),
        seq=seq,
        summary=session.compacted_summary or "",
        run=report.run_id if report else "",
        system_texts=system_texts,
    )
    return keys.encrypt(json.dumps(asdict(seal)))


def open_seal(user: User, content: str) -> Seal:
    """Return what an item holds. Raises the 400 problem if it is not ours or not the user's."""
    try:
        seal = Seal(**json.loads(keys.decrypt(content)))
    except (keys.UnreadableKey, ValueError, TypeError):
        seal = None
    if seal is None or seal.owner != str(user.pk):
        raise InvalidFieldError("input", "The compaction item was not made here for this user.")
    return seal


def describe_run(session: Session, report: CompactionReport | None) -> dict[str, str]:
    """Return the metadata that lead the owner to the run and to the summary."""
    links = {"session": str(session.pk), "compaction_status": report.status if report else "none"}
    if report:
        links["compaction"] = f"{get_base_path()}/api/v1/compactions/{report.run_id}"
    return links
