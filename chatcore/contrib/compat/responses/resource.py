"""Build the resource of a response, from its row or from an answer that is not stored."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

from chatcore.contrib.compat.chat_completions.messages import read_usage
from chatcore.contrib.compat.chat_completions.request import TRIMMED_HEADER
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.compat.responses import records
from chatcore.contrib.compat.responses.output_items import Item
from chatcore.models import Message
from chatcore.providers.base import Usage

# Fields of the request that the response does not repeat as they are.
HIDDEN_FIELDS = frozenset({"include", "conversation", "servers", "approvals"})
TRIMMED_METADATA = "context_trimmed"  # a name in the metadata of a response


def load_resource(record: StoredResponse) -> dict[str, object]:
    """Return a stored response as it is now."""
    record = records.reload_response(record)
    messages = records.load_output_messages(record)
    status = records.get_status(record, messages)
    output = [] if status == "in_progress" else records.build_output(record, messages, status)
    return build_resource(
        add_trimming(
            record.request, is_trimmed=any(message.context_trimmed for message in messages)
        ),
        id=str(record),
        created_at=int(record.created_at.timestamp()),
        completed_at=_get_end_time(record, status),
        status=status,
        output=output,
        previous_id=str(record.previous) if record.previous else None,
        usage=None if status == "in_progress" else _sum_usage(messages),
        error=_build_error(record) if status == "failed" else None,
        cut_by=messages[-1].finish_reason if messages else "",
    )


def build_resource(
    echo: Mapping[str, object],
    *,
    id: str,
    created_at: int,
    status: str,
    completed_at: int | None = None,
    output: Sequence[Item] = (),
    previous_id: str | None = None,
    usage: Mapping[str, object] | None = None,
    error: Mapping[str, object] | None = None,
    cut_by: str = "",
) -> dict[str, object]:
    """Return a response with all fields of the standard; `cut_by` is why the answer ended."""
    repeated_fields = {name: value for name, value in echo.items() if name not in HIDDEN_FIELDS}
    resource: dict[str, object] = {
        "id": id,
        "object": "response",
        "created_at": created_at,
        "completed_at": completed_at,
        "status": status,
        "incomplete_details": _build_incomplete_details(cut_by) if status == "incomplete" else None,
        "previous_response_id": previous_id,
        "output": list(output),
        "error": error,
        "usage": usage,
        **repeated_fields,
    }
    if echo.get("conversation"):
        resource["conversation"] = {"id": echo["conversation"]}
    return resource


def _build_incomplete_details(cut_by: str) -> dict[str, object]:
    return {"reason": "content_filter" if cut_by == "refusal" else "max_output_tokens"}


def format_usage(usage: Usage | None) -> dict[str, object] | None:
    """Return the provider's token counts under this API's names."""
    if usage is None:
        return None
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {
            "cached_tokens": usage.cache_read or 0,
            "cache_write_tokens": usage.cache_write or 0,
        },
        "output_tokens": usage.output,
        # Providers count them with the others.
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.input + usage.output,
    }


def build_trimmed_header(resource: Mapping[str, Any]) -> dict[str, str]:
    """Return the header that says of a response whether one of its requests was trimmed."""
    is_trimmed = (resource.get("metadata") or {}).get(TRIMMED_METADATA) == "true"
    return {TRIMMED_HEADER: "true" if is_trimmed else "false"}


def load_headers(record: StoredResponse) -> dict[str, str]:
    """Return the headers of an answer that is stored."""
    return {"X-Session-Id": str(record.session_id)}


def add_trimming(echo: Mapping[str, Any], *, is_trimmed: bool) -> Mapping[str, Any]:
    """Return what a response repeats; its metadata say so if one of its requests was trimmed."""
    if not is_trimmed:
        return echo
    return {**echo, "metadata": {**(echo.get("metadata") or {}), TRIMMED_METADATA: "true"}}


def _sum_usage(messages: Sequence[Message]) -> dict[str, object] | None:
    """Return the tokens of all calls of the model for one response."""
    usages = [usage for message in messages if (usage := read_usage(message))]
    return format_usage(reduce(Usage.add, usages)) if usages else None


def _build_error(record: StoredResponse) -> dict[str, object]:
    problem = (record.turn.error if record.turn else None) or {}
    return {
        "code": problem.get("type", "server_error"),
        "message": problem.get("detail", "The answer failed."),
    }


def _get_end_time(record: StoredResponse, status: str) -> int | None:
    if status not in ("completed", "incomplete"):
        return None
    messages = records.load_output_messages(record)
    if record.turn and record.turn.finished_at and not (messages and messages[-1].tool_calls):
        return int(record.turn.finished_at.timestamp())
    return int((messages[-1] if messages else record).created_at.timestamp())
