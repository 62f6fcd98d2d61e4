"""Name the tables and indexes of the search, and the terms of a message's session and owner."""

from uuid import UUID

TABLE = "chatcore_message_words"  # trigrams
STEM_TABLE = "chatcore_message_stems"
FILE_TABLE = "chatcore_file_stems"
INDEXES = (TABLE, STEM_TABLE, FILE_TABLE)
MAX_FILE_CHARS = 200_000  # of a file that are searched


def mark_session(session_id: UUID) -> str:
    """Return the term that all messages of a session have in the tables of stems."""
    return f"session{session_id.hex}"


def mark_owner(owner_id: object) -> str:
    """Return the term that all messages of a user have in PostgreSQL's tables of stems.

    No word of a text is equal to it, because a colon ends a word.
    """
    return f"owner:{owner_id}"
