"""The structured state and the memory, which are sent with the summary: read and edit them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.base.rest import conditions
from chatcore.base.rest.fields import StrictSerializer, StrictTextField
from chatcore.base.rest.problems import InvalidFieldError
from compaction.api.session_scope import (
    SessionScopedView,
    get_owned_session_id,
    load_owned_context,
)
from compaction.core.policy import Policy
from compaction.runs import receivers
from compaction.systems.lota import store
from compaction.systems.lota.settings import MemoryKnobs, StateKnobs
from compaction.systems.lota.state import ENTRY_CHARS, ITEM_CHARS, SECTIONS, StructuredState
from compaction.systems.lota.store import MAX_MEMORY_ENTRIES

MAX_MEMORY_SUMMARY_CHARS = 20_000
NO_MEMORY_DETAIL = "The session's policy has no memory."


def _build_items_field() -> serializers.ListField:
    item = StrictTextField(max_length=ITEM_CHARS, trim_whitespace=True)
    return serializers.ListField(child=item, required=False)


class StateSectionsSerializer(StrictSerializer):
    """Lists of sentences, newest last. Knobs of the policy limit their length."""

    decisions = _build_items_field()
    constraints = _build_items_field()
    tasks = _build_items_field()
    questions = _build_items_field()
    risks = _build_items_field()
    artifacts = _build_items_field()
    contributions = _build_items_field()


class WorkingStateSerializer(StrictSerializer):
    """What is sent with the summary, as reference text."""

    state = StateSectionsSerializer(required=False)
    memory = serializers.ListField(
        child=StrictTextField(max_length=ENTRY_CHARS, trim_whitespace=True),
        max_length=MAX_MEMORY_ENTRIES,
        required=False,
        help_text="Entries, newest last.",
    )
    memory_summary = StrictTextField(
        max_length=MAX_MEMORY_SUMMARY_CHARS,
        allow_blank=True,
        required=False,
        trim_whitespace=True,
        help_text="The summary of older entries.",
    )


class MemoryEntrySerializer(StrictSerializer):
    """A new entry of the memory."""

    text = StrictTextField(max_length=ENTRY_CHARS, trim_whitespace=True)


class WorkingStateView(SessionScopedView):
    """The structured state and the memory of a session."""

    serializer_class = WorkingStateSerializer

    @extend_schema(
        operation_id="read_state",
        parameters=[conditions.ENTITY_TAG],
        responses=WorkingStateSerializer,
    )
    def get(self, request: Request, session_id: UUID) -> Response:
        """Return what is stored and sent with the summary."""
        session_id = get_owned_session_id(request, session_id)
        return _respond_with_state(store.load_structured_state(session_id))

    @extend_schema(
        operation_id="edit_state",
        parameters=[conditions.IF_UNCHANGED, conditions.ENTITY_TAG],
        responses={200: WorkingStateSerializer} | conditions.CHANGED_RESPONSES,
    )
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Replace the given lists, from the next request on."""
        context = load_owned_context(request, session_id)
        serializer = self.get_serializer(data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        changes = serializer.validated_data
        _enforce_limits(changes, context.policy)

        def edit(old_state: StructuredState) -> StructuredState:
            conditions.check_entity_tag(request, _build_state_payload(old_state))
            return _apply_changes(old_state, changes)

        new_state = store.change_structured_state(session_id, edit)
        if "memory" in changes:
            receivers.request_work(context)
        return _respond_with_state(new_state)


class MemoryView(SessionScopedView):
    """The memory of a session."""

    serializer_class = MemoryEntrySerializer

    @extend_schema(
        operation_id="add_memory",
        parameters=[conditions.ENTITY_TAG],
        responses={201: WorkingStateSerializer},
    )
    def post(self, request: Request, session_id: UUID) -> Response:
        """Add an entry. The one that makes the memory full has the oldest ones summarized."""
        context = load_owned_context(request, session_id)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        if not context.policy.get(MemoryKnobs).entries:
            raise InvalidFieldError("text", NO_MEMORY_DETAIL)
        text = serializer.validated_data["text"]
        new_state = store.change_structured_state(
            session_id, lambda old_state: _add_memory_entry(old_state, text)
        )
        receivers.request_work(context)
        return _respond_with_state(new_state, status=201)


def _respond_with_state(structured_state: StructuredState, *, status: int = 200) -> Response:
    payload = _build_state_payload(structured_state)
    return Response(payload, status=status, headers=conditions.build_entity_headers(payload))


def _enforce_limits(changes: Mapping[str, Any], policy: Policy) -> None:
    """Raise ValidationError for lists that are longer than the policy allows."""
    limits = {name: getattr(policy.get(StateKnobs), name) for name in SECTIONS}
    errors = {
        name: [f"The session's policy allows at most {limits[name]} items here."]
        for name, items in changes.get("state", {}).items()
        if len(items) > limits[name]
    }
    if errors:
        raise serializers.ValidationError({"state": errors})
    memory_fields = [name for name in ("memory", "memory_summary") if changes.get(name)]
    if memory_fields and not policy.get(MemoryKnobs).entries:
        raise serializers.ValidationError({name: [NO_MEMORY_DETAIL] for name in memory_fields})


def _apply_changes(
    structured_state: StructuredState, changes: Mapping[str, Any]
) -> StructuredState:
    new_sections = {name: tuple(items) for name, items in changes.get("state", {}).items()}
    return replace(
        structured_state,
        sections={**structured_state.sections, **new_sections},
        memory=tuple(changes.get("memory", structured_state.memory)),
        memory_summary=changes.get("memory_summary", structured_state.memory_summary),
    )


def _add_memory_entry(structured_state: StructuredState, text: str) -> StructuredState:
    if len(structured_state.memory) >= MAX_MEMORY_ENTRIES:
        detail = f"There are already {MAX_MEMORY_ENTRIES} entries. Compact the session first."
        raise InvalidFieldError("text", detail)
    return replace(structured_state, memory=(*structured_state.memory, text))


def _build_state_payload(structured_state: StructuredState) -> dict[str, object]:
    return {
        "state": {name: list(structured_state.sections[name]) for name in SECTIONS},
        "memory": list(structured_state.memory),
        "memory_summary": structured_state.memory_summary,
    }
