"""Limits of requests: sizes in bytes, and numbers of messages."""

KB = 1024
MB = KB * KB
MESSAGE_BYTES = 256 * KB
BODY_BYTES = 2 * MB
IMPORT_BODY_BYTES = 50 * MB
LARGE_BODY_BYTES = MB  # from here on values are counted first, and a person's bodies parsed in turn
# A value of JSON takes 70 bytes and more once it is parsed, however short it is written.
BODY_VALUES = 500_000
IMPORT_VALUES = 2_500_000  # of a session with as many messages as may be, or of many chats
IMPORT_MESSAGES = 10_000
SESSION_MESSAGES = 100_000  # in the import of an exported session


def exceeds_bytes(text: str, max_bytes: int) -> bool:
    """Return True if the text takes more than `max_bytes` in UTF-8."""
    # No code point takes more than 4 bytes, so most texts need not be encoded to know.
    return len(text) * 4 > max_bytes and len(text.encode()) > max_bytes
