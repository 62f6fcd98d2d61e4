"""The REST face of the structured state and the memory: what is kept beside the summary, read and set by its owner."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction.api.runs import SessionScopedView, get_own_session_id
from compaction.core.policy import Policy
from compaction.core.state import ENTRY_CHARS, ITEM_CHARS, SECTIONS, StructuredState
from compaction.sizing import session_context
from compaction.summaries import state as summary_state
from compaction.summaries.memory import MAX_MEMORY_ENTRIES

MAX_MEMORY_SUMMARY_CHARS = 20_000
NO_MEMORY_MESSAGE = "The session's policy keeps no memory."


class SentenceField(serializers.CharField):
    """A text on one line or more, without the space around it; no number becomes one."""

    def to_internal_value(self, data: Any) -> str:
        """Only a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class _ClosedSerializer(serializers.Serializer[Any]):
    """A field that is not known is refused by its name."""

    closed = True  # for the OpenAPI document: additionalProperties: false

    def to_internal_value(self, data: Any) -> Any:
        """Refuse before anything is read."""
        if isinstance(data, Mapping) and (
            unknown_fields := [name for name in data if name not in self.fields]
        ):
            raise serializers.ValidationError(
                {name: ["There is no such field."] for name in unknown_fields}
            )
        return super().to_internal_value(data)


def _build_items_field() -> serializers.ListField:
    return serializers.ListField(child=SentenceField(max_length=ITEM_CHARS), required=False)


class StateSectionsSerializer(_ClosedSerializer):
    """Lists of sentences, the newest last; how many each may hold is a knob of the policy."""

    decisions = _build_items_field()
    constraints = _build_items_field()
    tasks = _build_items_field()
    questions = _build_items_field()
    risks = _build_items_field()
    artifacts = _build_items_field()
    contributions = _build_items_field()


class WorkingStateSerializer(_ClosedSerializer):
    """What is sent beside the summary, as reference text."""

    state = StateSectionsSerializer(required=False)
    memory = serializers.ListField(
        child=SentenceField(max_length=ENTRY_CHARS),
        max_length=MAX_MEMORY_ENTRIES,
        required=False,
        help_text="Entries, the newest last.",
    )
    memory_summary = SentenceField(
        max_length=MAX_MEMORY_SUMMARY_CHARS,
        allow_blank=True,
        required=False,
        help_text="What older entries were folded into.",
    )


class MemoryEntrySerializer(_ClosedSerializer):
    """One entry more."""

    text = SentenceField(max_length=ENTRY_CHARS)


class WorkingStateView(SessionScopedView):
    """The structured state and the memory of a session."""

    serializer_class = WorkingStateSerializer

    @extend_schema(operation_id="read_state", responses=WorkingStateSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """What is kept beside the summary, and sent with it."""
        return Response(
            _build_state_payload(
                summary_state.load_structured_state(get_own_session_id(request, session_id))
            )
        )

    @extend_schema(operation_id="edit_state", responses=WorkingStateSerializer)
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Put other words in place of what is named, list by list, from the next request on."""
        policy = _load_policy(get_own_session_id(request, session_id))
        serializer = self.get_serializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        _enforce_limits(data, policy)
        return Response(
            _build_state_payload(
                summary_state.change_structured_state(
                    session_id, lambda old_state: _apply_edit(old_state, data)
                )
            )
        )


class MemoryView(SessionScopedView):
    """The memory block of a session."""

    serializer_class = MemoryEntrySerializer

    @extend_schema(operation_id="add_memory", responses={201: WorkingStateSerializer})
    def post(self, request: Request, session_id: UUID) -> Response:
        """Remember one thing more; when there are many, the oldest are folded into the memory's summary by the next compaction."""
        policy = _load_policy(get_own_session_id(request, session_id))
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not policy.memory.entries:
            raise serializers.ValidationError({"text": [NO_MEMORY_MESSAGE]})
        text = serializer.validated_data["text"]
        return Response(
            _build_state_payload(
                summary_state.change_structured_state(
                    session_id, lambda old_state: _add_memory_entry(old_state, text)
                )
            ),
            status=201,
        )


def _load_policy(session_id: UUID) -> Policy:
    context = session_context.load_session_context(session_id)
    if context is None:
        raise session_context.NoSuchSession(str(session_id))
    return context.policy


def _enforce_limits(data: Mapping[str, Any], policy: Policy) -> None:
    limits = {name: getattr(policy.state, name) for name in SECTIONS}
    errors = {
        name: [f"The session's policy keeps at most {limits[name]} items here."]
        for name, items in data.get("state", {}).items()
        if len(items) > limits[name]
    }
    if errors:
        raise serializers.ValidationError({"state": errors})
    if not policy.memory.entries and (
        memory_fields := [name for name in ("memory", "memory_summary") if data.get(name)]
    ):
        raise serializers.ValidationError({name: [NO_MEMORY_MESSAGE] for name in memory_fields})


def _apply_edit(structured_state: StructuredState, data: Mapping[str, Any]) -> StructuredState:
    sections = {name: tuple(items) for name, items in data.get("state", {}).items()}
    changes = {name: value for name, value in data.items() if name == "memory_summary"}
    if "memory" in data:
        changes["memory"] = tuple(data["memory"])
    return replace(structured_state, sections={**structured_state.sections, **sections}, **changes)


def _add_memory_entry(structured_state: StructuredState, text: str) -> StructuredState:
    if len(structured_state.memory) >= MAX_MEMORY_ENTRIES:
        raise serializers.ValidationError(
            {
                "text": [
                    f"There are {MAX_MEMORY_ENTRIES} entries already; compact the session first."
                ]
            }
        )
    return replace(structured_state, memory=(*structured_state.memory, text))


def _build_state_payload(structured_state: StructuredState) -> dict[str, Any]:
    return {
        "state": {name: list(structured_state.sections[name]) for name in SECTIONS},
        "memory": list(structured_state.memory),
        "memory_summary": structured_state.memory_summary,
    }
