"""Cut imported tool results as a turn cuts its own, and keep the whole ones beside them."""

import contextlib
from collections.abc import Iterable, Iterator

from django.db import connection

from chatcore.models import Message, Session
from chatcore.tools.output import ToolOutput, build_tool_output


@contextlib.contextmanager
def cut_results(
    session: Session, rows: Iterable[Message]
) -> Iterator[list[tuple[Message, ToolOutput]]]:
    """Cut the tool results among unsaved rows, and yield those that are kept whole.

    Each needs its note once it is numbered, and its full text attached once it is stored. Files
    that no stored row refers to at the end are deleted.
    """
    outputs = []
    try:
        for row in rows:
            if row.role != Message.Role.TOOL:
                continue
            output = build_tool_output(session, row.tool_name, row.content)
            for name, value in output.message_fields.items():
                setattr(row, name, value)
            if output.full_text is None:
                continue
            # Inside a transaction nobody may wait for a store: there the text stays in its row.
            if not connection.in_atomic_block:
                output = output.put_away(session)
            outputs.append((row, output))
        yield outputs
    finally:
        for _, output in outputs:
            output.discard_unused()
