"""Name the tables and indexes of the search, and the terms of a message's session and owner.

The first migration makes them and the triggers that fill them: FTS5 on SQLite, GIN on PostgreSQL.
There are two indexes of messages. That of stems answers questions. That of trigrams, groups of
three characters, finds parts of words, and languages without spaces such as Chinese. Both say which
messages have a term and not where, which takes a quarter of the room; ranking.py looks at the texts
for the rest. Files are indexed under the id of their message.

Each message also has a term for its session, so that a search of one session reads nothing of
others. On SQLite the tables of stems hold no texts (`content=''`). On PostgreSQL stems have tables
of their own: as an index of an expression they would be computed again whenever the planner takes
another way to the rows. A search has to see new rows at once, and whatever an index has not sorted
in yet is read through by each of them: the list of those is off for stems and short for trigrams.

A migration that alters `Message` or `Attachment` so that SQLite makes the table anew loses the
triggers, and must make them again. The triggers read no other table: such a migration would fail.
"""

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
