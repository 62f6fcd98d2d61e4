"""Define how a host hands over stored messages, whether or not they are still sent."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceMessage:
    """A message of the user or a tool as it is stored, without its files."""

    seq: int
    role: str
    text: str


class MessageSource(Protocol):
    """The stored messages of a session, by their numbers."""

    def load_source_messages(
        self, session_id: UUID, *, after_seq: int, up_to_seq: int, limit: int
    ) -> list[SourceMessage]:
        """Return the first current messages of users and tools in a range, in order.

        `after_seq` is excluded, `up_to_seq` included. Messages that are not complete are left out.
        """
        ...

    def lock_session(self, session_id: UUID) -> bool:
        """Lock the session's row to the end of the transaction. False if it is deleted.

        Nobody changes the session's messages meanwhile.
        """
        ...

    def list_current_seqs(self, session_id: UUID, first_seq: int, last_seq: int) -> frozenset[int]:
        """Return the numbers of the messages in a range that are current."""
        ...

    def map_message_ids(self, session_id: UUID, seqs: Collection[int]) -> dict[int, int]:
        """Return the host's id of each message that exists, by its number."""
        ...

    def find_message_seq(self, session_id: UUID, message_id: int) -> int | None:
        """Return the number of the session's message with this id; None if there is none."""
        ...

    def list_shortened_seqs(self, session_id: UUID, *, first_seq: int) -> frozenset[int]:
        """Return the numbers of messages from `first_seq` on that are sent in another form."""
        ...

    def erase_background(self, session_id: UUID, texts: Collection[str]) -> None:
        """Clear the reference text of every earlier context that holds one of these texts.

        Joins the open transaction.
        """
        ...
