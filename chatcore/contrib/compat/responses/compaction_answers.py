"""Answer requests that only ask for a compaction."""

from django.contrib.auth.models import User

from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import compactions, ids, resource, storage
from chatcore.contrib.compat.responses.output_items import Item, build_stored_items
from chatcore.contrib.compat.responses.request import ResponseRequest
from chatcore.models import Message, Session
from chatcore.providers.base import Usage
from chatcore.turns import capacity


def compact(user: User, request: ResponseRequest) -> tuple[dict[str, object], dict[str, str]]:
    """Compact a conversation; return the resource of the standard, and headers."""
    with capacity.take_slot(user.pk):
        session, origin = storage.store_input(user, request)
        report = compactions.compact_session(session, instructions=request.instructions)
    system_texts = origin.add_system_texts(request)
    content = compactions.write_seal(
        session, seq=session.last_seq, system_texts=system_texts, report=report
    )
    record = _store_record(request, session, origin.previous, system_texts, content)
    item = {
        "id": f"cmp_{ids.build_stem(session.pk, session.last_seq)}",
        "type": "compaction",
        "encrypted_content": content,
    }
    usage = Usage(
        input=report.input_tokens if report else 0, output=report.output_tokens if report else 0
    )
    answer = {
        "id": str(record),
        "object": "response.compaction",
        "created_at": int(record.created_at.timestamp()),
        "output": [*_load_recent_questions(session), item],
        "usage": resource.format_usage(usage),
        "metadata": compactions.describe_run(session, report),
    }
    return answer, resource.load_headers(record)


def answer_trigger(user: User, request: ResponseRequest) -> StoredResponse:
    """Store the input, compact, and return a response that is the compaction alone."""
    with capacity.take_slot(user.pk):
        session, origin = storage.store_input(user, request)
        report = compactions.compact_session(session)
    system_texts = origin.add_system_texts(request)
    content = compactions.write_seal(
        session, seq=session.last_seq, system_texts=system_texts, report=report
    )
    request.echo["metadata"] = compactions.describe_run(session, report) | request.echo["metadata"]
    return _store_record(request, session, origin.previous, system_texts, content)


def _store_record(
    request: ResponseRequest,
    session: Session,
    previous: StoredResponse | None,
    system_texts: list[str],
    content: str,
) -> StoredResponse:
    return StoredResponse.objects.create(
        session=session,
        previous=previous,
        after_seq=session.last_seq,
        input_seq=session.last_seq,
        after_event_seq=session.last_event_seq,
        request=request.echo,
        system_texts=system_texts,
        compaction={"encrypted_content": content},
    )


def _load_recent_questions(session: Session) -> list[Item]:
    """Return what the user said since the boundary: it is still sent as it is."""
    messages = session.messages.exclude_superseded().filter(
        role=Message.Role.USER, seq__gte=session.compact_boundary_seq or 0
    )
    return build_stored_items(messages.select_related("turn").order_by("seq"))
