"""The context over REST: preview, summary, search."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.context import revisions, summary_block
from chatcore.models import Message, Session
from compaction.runs import engine
from tests.support.compaction_sessions import say
from tests.support.context_usage import load_usage
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply


@pytest.fixture
def summarized_session(session: Session) -> Session:
    """Four messages, the first two of them summarized."""
    texts = [
        ("user", "I like tea."),
        ("assistant", "Noted: tea."),
        ("user", "And cake."),
        ("assistant", "Cake too."),
    ]
    Message.objects.bulk_create(
        Message(session=session, seq=n, role=r, content=c)
        for n, (r, c) in enumerate(texts, start=1)
    )
    Session.objects.filter(pk=session.pk).update(
        last_seq=4, message_count=4, system_prompt="Be brief."
    )
    revisions.install_revision(
        session.pk, base_version=0, summary="Likes tea.", boundary_seq=3, source="compaction"
    )
    return session


@pytest.fixture
def address(summarized_session: Session) -> str:
    return f"/api/v1/sessions/{summarized_session.pk}"


@pytest.mark.django_db(transaction=True)
def test_the_preview_is_exactly_what_the_next_request_sends(
    api: APIClient, address: str, scripted: ScriptedModel
) -> None:
    preview = api.get(f"{address}/context/preview").json()
    scripted.script(Reply(text="Fine."))
    api.post(f"{address}/messages", {"content": "Go on."})
    sent = scripted.requests[0].json
    assert sent["messages"][0] == {"role": "system", "content": preview["system"]}
    assert [(m["role"], m["content"]) for m in sent["messages"][1:-1]] == [
        (m["role"], m["content"]) for m in preview["messages"]
    ]
    assert [tool["function"] for tool in sent["tools"]] == preview["tools"]
    assert "Likes tea." in preview["system"]
    assert preview["system"].startswith("Be brief.")
    assert [m["seq"] for m in preview["messages"]] == [3, 4]


def test_the_preview_tells_what_stands_apart_from_the_conversation(
    api: APIClient, address: str, summarized_session: Session
) -> None:
    placement: dict[str, object] = {"place": "first_system", "heading": "Before:"}
    revisions.install_revision(
        summarized_session.pk,
        base_version=1,
        summary="Likes tea.",
        boundary_seq=3,
        placement=placement,
        source="compaction",
    )
    preview = api.get(f"{address}/context/preview").json()
    # One text, since many servers refuse a second.
    assert (preview["system"], preview["preface"]) == (
        f"Be brief.\n\nBefore:\n\n{summary_block.wrap_in_envelope('Likes tea.')}",
        "",
    )
    placement = {"place": "last_user", "nudge": "Go on.", "after_seq": 4}
    revisions.install_revision(
        summarized_session.pk,
        base_version=2,
        summary=None,
        boundary_seq=3,
        placement=placement,
        source="compaction",
    )
    messages = api.get(f"{address}/context/preview").json()["messages"]
    assert [(m["seq"], m["aside"], m["images"]) for m in messages] == [
        (3, False, []),
        (4, False, []),
        (None, True, []),
    ]


def test_an_edited_summary_keeps_its_place_and_what_goes_with_it(
    api: APIClient, address: str, summarized_session: Session
) -> None:
    placement = {"place": "first_system", "heading": "Before:"}
    background_fields = {"kept_seqs": [1], "background": "TASKS: none", "placement": placement}
    revisions.install_revision(
        summarized_session.pk,
        base_version=1,
        summary="Likes tea.",
        boundary_seq=3,
        source="compaction",
        **background_fields,  # type: ignore[arg-type]
    )
    assert api.patch(f"{address}/summary", {"summary": "Likes coffee."}).status_code == 200
    preview = api.get(f"{address}/context/preview").json()
    block = "Before:\n\n" + summary_block.wrap_in_envelope("Likes coffee.\n\nTASKS: none")
    assert preview["system"] == f"Be brief.\n\n{block}"
    assert [(m["role"], m["content"]) for m in preview["messages"]] == [
        ("user", "I like tea.\n\nAnd cake."),
        ("assistant", "Cake too."),
    ]


def test_an_edited_summary_is_what_is_sent(api: APIClient, address: str) -> None:
    edited = api.patch(f"{address}/summary", {"summary": "Likes coffee."})
    assert (
        edited.status_code,
        edited.json()["compacted_summary"],
        edited.json()["compact_boundary_seq"],
    ) == (200, "Likes coffee.", 3)
    assert edited.json()["context_version"] == 2
    assert (
        api.patch(f"{address}/summary", {"compacted_summary": "Likes coffee."}).status_code == 200
    )
    assert "Likes coffee." in api.get(f"{address}/context/preview").json()["system"]


def test_a_reset_sends_the_full_history_again(api: APIClient, address: str) -> None:
    assert api.delete(f"{address}/summary").status_code == 204
    preview = api.get(f"{address}/context/preview").json()
    assert (preview["system"], [m["seq"] for m in preview["messages"]]) == (
        "Be brief.",
        [1, 2, 3, 4],
    )
    assert api.get(address).json()["compacted_summary"] is None
    assert api.patch(f"{address}/summary", {"summary": "x"}).status_code == 404


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"summary": ""},
        {"summary": 5},
        {"summary": None},
        {"summary": "x", "boundary": 1},
        {"summary": "x", "compacted_summary": "y"},
    ],
)
def test_a_wrong_summary_is_refused(api: APIClient, address: str, body: dict[str, object]) -> None:
    assert api.patch(f"{address}/summary", body).status_code == 400


def test_search_finds_compacted_messages_too(
    api: APIClient, address: str, summarized_session: Session
) -> None:
    hits = api.get(f"{address}/search?q=TEA").json()
    assert [hit["seq"] for hit in hits["results"]] == [2, 1]
    assert (
        hits["results"][0] | {"session": str(summarized_session.pk), "snippet": "Noted: tea."}
        == hits["results"][0]
    )
    assert api.get("/api/v1/search?q=tea&limit=1").json()["results"] == hits["results"][:1]


def test_search_finds_nothing_of_another_user(
    as_user: Callable[[User], APIClient], summarized_session: Session
) -> None:
    assert (
        as_user(User.objects.create_user("mallory")).get("/api/v1/search?q=tea").json()["results"]
        == []
    )


@pytest.mark.parametrize("query", ["", "q=", "q=%20", "q=%00"])
def test_a_search_for_nothing_is_refused(api: APIClient, address: str, query: str) -> None:
    for place in (f"{address}/search", "/api/v1/search"):
        assert api.get(f"{place}?{query}").json()["errors"][0]["field"] == "q"


@pytest.mark.django_db(transaction=True)
def test_the_preview_is_what_is_sent_when_messages_do_not_fit(
    api: APIClient, full: Session, scripted: ScriptedModel
) -> None:
    """A run has failed, so that the running turn's request is trimmed: to the byte, and counted."""
    scripted.default = Reply(status=500, text="out of order")
    engine.compact_now(full.pk, trigger="manual")
    previews: list[dict[str, Any]] = []

    def look(_: dict[str, Any]) -> Reply:
        previews.append(api.get(f"/api/v1/sessions/{full.pk}/context/preview").json())
        return Reply(text="Fine.")

    scripted.script(look)
    say(full)
    sent = scripted.requests[-1].json["messages"]
    preview = previews[0]
    system = [m["content"] for m in sent if m["role"] == "system"]
    assert "\n\n".join(system) == preview["system"]
    assert [(m["role"], m["content"]) for m in sent if m["role"] != "system"] == [
        (m["role"], m["content"]) for m in preview["messages"]
    ]
    assert preview["left_out"][:2] == [1, 2]
    assert len(preview["left_out"]) + len(preview["messages"]) == 15
    usage = api.get(f"/api/v1/sessions/{full.pk}/context").json()
    assert preview["tokens"] < usage["threshold_tokens"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("edit", [{"system_prompt": "Be brief. " * 400}, {"tools": []}])
def test_a_count_of_the_provider_ends_with_what_it_has_counted(
    api: APIClient, session: Session, scripted: ScriptedModel, edit: dict[str, Any]
) -> None:
    scripted.script(Reply(text="Fine.", usage=(900, 10)))
    say(session)
    assert load_usage(session.pk)["source"] == "provider"
    api.patch(f"/api/v1/sessions/{session.pk}", {"title": "Flights"})
    assert load_usage(session.pk)["source"] == "provider"
    api.patch(f"/api/v1/sessions/{session.pk}", edit)
    usage = api.get(f"/api/v1/sessions/{session.pk}/context").json()
    assert load_usage(session.pk)["source"] == "estimated"
    assert usage["breakdown"]["system_prompt"] == len(edit.get("system_prompt", "")) // 4


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("system_prompt", ["Be brief. " * 400, ""])
def test_parts_add_up_where_an_upgrade_gave_the_fixed_parts_other_sizes(
    api: APIClient, session: Session, scripted: ScriptedModel, system_prompt: str
) -> None:
    Session.objects.filter(pk=session.pk).update(system_prompt="Be brief. " * 40)
    scripted.script(Reply(text="Word " * 80, usage=(400, 100)))
    say(session, "What now? " * 20)
    # Unlike an edit, an upgrade leaves the provider's count in force.
    Session.objects.filter(pk=session.pk).update(system_prompt=system_prompt)
    usage = api.get(f"/api/v1/sessions/{session.pk}/context").json()
    parts = usage["breakdown"]
    assert (usage["source"], usage["estimated_input_tokens"]) == ("provider", 500)
    assert sum(parts.values()) == 500
    shares = [parts[name] for name in ("conversation_history", "current_prompt")]
    assert shares[0] / shares[1] == pytest.approx(100 / 50, rel=0.1)
