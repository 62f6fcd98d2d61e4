"""The REST face of the structured state and the memory: what is kept beside the summary, read and set by its owner."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from compaction.api.runs import SessionView, mine
from compaction.core.policy import Policy
from compaction.core.state import ENTRY_CHARS, ITEM_CHARS, SECTIONS, Working
from compaction.sizing import session_context
from compaction.summaries import state as summary_state
from compaction.summaries.memory import MOST_ENTRIES

SUMMARY_CHARS = 20_000
NO_MEMORY = "The session's policy keeps no memory."


class Sentence(serializers.CharField):
    """A text on one line or more, without the space around it; no number becomes one."""

    def to_internal_value(self, data: Any) -> str:
        """Only a string."""
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class _Closed(serializers.Serializer[Any]):
    """A field that is not known is refused by its name."""

    closed = True  # for the OpenAPI document: additionalProperties: false

    def to_internal_value(self, data: Any) -> Any:
        """Refuse before anything is read."""
        if isinstance(data, Mapping) and (
            unknown := [name for name in data if name not in self.fields]
        ):
            raise serializers.ValidationError(
                {name: ["There is no such field."] for name in unknown}
            )
        return super().to_internal_value(data)


def _items() -> serializers.ListField:
    return serializers.ListField(child=Sentence(max_length=ITEM_CHARS), required=False)


class StateSectionsSerializer(_Closed):
    """Lists of sentences, the newest last; how many each may hold is a knob of the policy."""

    decisions = _items()
    constraints = _items()
    tasks = _items()
    questions = _items()
    risks = _items()
    artifacts = _items()
    contributions = _items()


class WorkingStateSerializer(_Closed):
    """What is sent beside the summary, as reference text."""

    state = StateSectionsSerializer(required=False)
    memory = serializers.ListField(
        child=Sentence(max_length=ENTRY_CHARS),
        max_length=MOST_ENTRIES,
        required=False,
        help_text="Entries, the newest last.",
    )
    memory_summary = Sentence(
        max_length=SUMMARY_CHARS,
        allow_blank=True,
        required=False,
        help_text="What older entries were folded into.",
    )


class MemoryEntrySerializer(_Closed):
    """One entry more."""

    text = Sentence(max_length=ENTRY_CHARS)


class State(SessionView):
    """The structured state and the memory of a session."""

    serializer_class = WorkingStateSerializer

    @extend_schema(operation_id="read_state", responses=WorkingStateSerializer)
    def get(self, request: Request, session_id: UUID) -> Response:
        """What is kept beside the summary, and sent with it."""
        return Response(_told(summary_state.read(mine(request, session_id))))

    @extend_schema(operation_id="edit_state", responses=WorkingStateSerializer)
    def patch(self, request: Request, session_id: UUID) -> Response:
        """Put other words in place of what is named, list by list, from the next request on."""
        policy = _policy(mine(request, session_id))
        fields = self.get_serializer(data=request.data, partial=True)
        fields.is_valid(raise_exception=True)
        named = fields.validated_data
        _refuse_too_much(named, policy)
        return Response(
            _told(summary_state.change(session_id, lambda working: _edited(working, named)))
        )


class Memory(SessionView):
    """The memory block of a session."""

    serializer_class = MemoryEntrySerializer

    @extend_schema(operation_id="add_memory", responses={201: WorkingStateSerializer})
    def post(self, request: Request, session_id: UUID) -> Response:
        """Remember one thing more; when there are many, the oldest are folded into the memory's summary by the next compaction."""
        policy = _policy(mine(request, session_id))
        fields = self.get_serializer(data=request.data)
        fields.is_valid(raise_exception=True)
        if not policy.memory.entries:
            raise serializers.ValidationError({"text": [NO_MEMORY]})
        text = fields.validated_data["text"]
        return Response(
            _told(summary_state.change(session_id, lambda working: _remembering(working, text))),
            status=201,
        )


def _policy(session_id: UUID) -> Policy:
    now = session_context.of(session_id)
    if now is None:
        raise session_context.NoSuchSession(str(session_id))
    return now.policy


def _refuse_too_much(named: Mapping[str, Any], policy: Policy) -> None:
    limits = {name: getattr(policy.state, name) for name in SECTIONS}
    over = {
        name: [f"The session's policy keeps at most {limits[name]} items here."]
        for name, items in named.get("state", {}).items()
        if len(items) > limits[name]
    }
    if over:
        raise serializers.ValidationError({"state": over})
    if not policy.memory.entries and (
        unwanted := [name for name in ("memory", "memory_summary") if named.get(name)]
    ):
        raise serializers.ValidationError({name: [NO_MEMORY] for name in unwanted})


def _edited(working: Working, named: Mapping[str, Any]) -> Working:
    sections = {name: tuple(items) for name, items in named.get("state", {}).items()}
    changes = {name: value for name, value in named.items() if name == "memory_summary"}
    if "memory" in named:
        changes["memory"] = tuple(named["memory"])
    return replace(working, state={**working.state, **sections}, **changes)


def _remembering(working: Working, text: str) -> Working:
    if len(working.memory) >= MOST_ENTRIES:
        raise serializers.ValidationError(
            {"text": [f"There are {MOST_ENTRIES} entries already; compact the session first."]}
        )
    return replace(working, memory=(*working.memory, text))


def _told(working: Working) -> dict[str, Any]:
    return {
        "state": {name: list(working.state[name]) for name in SECTIONS},
        "memory": list(working.memory),
        "memory_summary": working.memory_summary,
    }
