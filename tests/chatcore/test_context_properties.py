"""Whatever is stored, each request is valid in both protocols and stored messages do not change."""

from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chatcore.context import builder, revisions
from chatcore.models import Message, Session
from tests.support.strict_servers import find_refusals

pytestmark = pytest.mark.django_db

IDS = ("a", "b", "functions.look:0")
KINDS = ("pruned", "excerpted", "images_stripped", "hidden")
TEXTS = st.sampled_from(("", " ", "words"))
PLACES = (None, "last_user", "system_prefix", "first_system", "first_user", "last_user")


@dataclass(frozen=True)
class Scene:
    """A stored conversation, and how it is shown."""

    rows: list[dict[str, Any]]
    boundary: int | None
    kept: list[int]
    edits: list[revisions.MessageEdit]
    summary: str | None
    background: str
    placement: dict[str, Any]


def marked(draw: st.DrawFn, row: dict[str, Any]) -> dict[str, Any]:
    """The row, now and then pinned, superseded or not complete."""
    row["pinned"] = draw(st.integers(0, 4)) == 0
    row["branch"] = UUID(int=1) if draw(st.integers(0, 6)) == 0 else None
    row["status"] = draw(
        st.sampled_from(("complete", "complete", "complete", "interrupted", "failed", "streaming"))
    )
    return row


def result(draw: st.DrawFn, call_id: str) -> dict[str, Any]:
    return {
        "role": "tool",
        "content": draw(TEXTS),
        "tool_call_id": call_id,
        "tool_name": draw(st.sampled_from(("", "look"))),
    }


def piece(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Draw a message of any kind, or calls with most of their results in any order."""
    role = draw(st.sampled_from(("user", "assistant", "tool", "system", "calls", "calls")))
    if role == "tool":
        return [result(draw, draw(st.sampled_from(IDS)))]
    if role != "calls":
        return [{"role": role, "content": draw(TEXTS)}]
    ids = draw(st.lists(st.sampled_from(IDS), unique=True, min_size=1))
    calls = [{"id": call_id, "name": "look", "arguments": "{}"} for call_id in ids]
    answered = [call_id for call_id in draw(st.permutations(ids)) if draw(st.integers(0, 4))]
    return [
        {"role": "assistant", "content": draw(TEXTS), "tool_calls": calls},
        *(result(draw, call_id) for call_id in answered),
    ]


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    rows = [marked(draw, row) for _ in range(draw(st.integers(1, 7))) for row in piece(draw)]
    seqs = st.integers(1, len(rows))
    boundary = draw(st.none() | seqs)
    edited = draw(st.lists(seqs, unique=True, max_size=4))
    placement = {
        "place": draw(st.sampled_from(PLACES)),
        "heading": draw(st.sampled_from(("", "Before:"))),
        "nudge": draw(st.sampled_from(("", "Go on."))),
        "marker": draw(st.sampled_from(("", "[left out]"))),
        "after_seq": draw(st.none() | seqs),
    }
    return Scene(
        rows=rows,
        boundary=boundary,
        kept=draw(st.lists(st.integers(1, boundary - 1), unique=True, max_size=4))
        if boundary and boundary > 1
        else [],
        edits=[
            revisions.MessageEdit(
                message_seq=seq, kind=draw(st.sampled_from(KINDS)), replacement="[cut]"
            )
            for seq in edited
        ],
        summary=draw(st.sampled_from((None, "They met."))),
        background=draw(st.sampled_from(("", "TASKS: none"))),
        placement=placement,
    )


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(scene=scenes())
def test_what_is_sent_is_valid_and_what_is_stored_stays(user: User, scene: Scene) -> None:
    session = Session.objects.create(owner=user, system_prompt="Be brief.")
    Message.objects.bulk_create(
        Message(session=session, seq=seq, **row) for seq, row in enumerate(scene.rows, start=1)
    )
    before = list(session.messages.order_by("seq").values())
    revisions.install_revision(
        session.pk,
        base_version=0,
        summary=scene.summary,
        boundary_seq=scene.boundary,
        kept_seqs=scene.kept,
        edits=scene.edits,
        background=scene.background,
        placement=scene.placement,
        source="compaction",
    )
    request = builder.build_request(session)
    assert find_refusals(request) == []
    assert list(session.messages.order_by("seq").values()) == before
    seqs = [each.seq for each in request.messages if each.seq is not None]
    assert len(seqs) == len(set(seqs)), "a message is sent twice"
    said = request.system + request.preface + "".join(each.content for each in request.messages)
    assert said.count("<conversation_summary>") == bool(scene.summary or scene.background)
    for word in ("nudge", "marker"):
        assert said.count(scene.placement[word] or "\x00") == bool(scene.placement[word])
    for row in (
        row
        for row in before
        if row["pinned"] and row["seq"] not in {edit.message_seq for edit in scene.edits}
    ):
        live = (
            row["branch"] is None
            and row["status"] in ("complete", "interrupted")
            and row["role"] != "system"
        )
        assert (row["seq"] in seqs) == live, "a pinned message is sent as long as it is current"
