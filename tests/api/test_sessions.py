"""Sessions over REST."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.models import Session
from models_registry.models import AiModel

SESSIONS = "/api/v1/sessions"


def test_a_new_session_gets_the_default_model_and_says_where_it_is(
    api: APIClient, model: AiModel
) -> None:
    response = api.post(SESSIONS, {"title": "Trip"})
    assert response.status_code == 201
    assert (
        response.json() | {"title": "Trip", "model": "scripted/test-model", "message_count": 0}
        == response.json()
    )
    assert api.get(response["Location"]).json() == response.json()


def test_a_session_can_be_made_with_every_writable_field(api: APIClient, model: AiModel) -> None:
    fields = {
        "title": "Trip",
        "model": "test-model",
        "system_prompt": "Be brief.",
        "policy": "oneclaw",
        "auto_compact": False,
        "compact_threshold": 0.7,
        "tools": ["calculate"],
        "params": {"temperature": 0.1, "max_tokens": 10},
        "pinned": True,
        "archived": True,
    }
    session_data = api.post(SESSIONS, fields).json()
    assert session_data | fields | {"model": "scripted/test-model"} == session_data


def test_a_session_shows_exactly_the_fields_of_the_contract(
    api: APIClient, session: Session
) -> None:
    names = (
        "id title model system_prompt project policy auto_compact compact_threshold tools params "
        "pinned archived temporary compacted_summary compact_boundary_seq "
        "compact_boundary_timestamp context_version message_count created_at updated_at "
        "external_id forked_from forked_from_seq parent"
    )
    assert set(api.get(f"{SESSIONS}/{session.pk}").json()) == set(names.split())


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("title", 7),
        ("title", "x" * 201),
        ("title", None),
        ("model", "no-such-model"),
        ("model", ["test-model"]),
        ("policy", "no-such-policy"),
        ("pinned", "yes"),
        ("pinned", 1),
        ("tools", "calculate"),
        ("tools", ["no_such_tool"]),
        ("params", []),
        ("params", {"max_tokens": "many"}),
        ("colour", "blue"),
        ("message_count", 3),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(
    api: APIClient, session: Session, field: str, value: Any
) -> None:
    for refusal in (
        api.post(SESSIONS, {field: value}),
        api.patch(f"{SESSIONS}/{session.pk}", {field: value}),
    ):
        assert refusal.status_code == 400
        assert refusal["Content-Type"] == "application/problem+json"
        assert refusal.json()["errors"][0]["field"].startswith(field)
    assert Session.objects.count() == 1


def test_a_session_is_found_by_the_name_that_another_api_gave_it(
    api: APIClient, user: User, model: AiModel, session: Session
) -> None:
    named_session = Session.objects.create(owner=user, model=model, external_id="trip")
    [found] = api.get(f"{SESSIONS}?external_id=trip").json()["results"]
    assert (found["id"], found["external_id"]) == (str(named_session.pk), "trip")
    assert api.get(f"{SESSIONS}?external_id=other").json()["results"] == []


def test_a_change_touches_the_given_fields_only(api: APIClient, session: Session) -> None:
    revisions.install_revision(
        session.pk, base_version=0, summary="Earlier.", boundary_seq=None, source="compaction"
    )
    changed = api.patch(f"{SESSIONS}/{session.pk}", {"title": "New", "model": None})
    assert changed.status_code == 200
    assert (
        changed.json()["title"],
        changed.json()["model"],
        changed.json()["compacted_summary"],
    ) == ("New", None, "Earlier.")
    assert changed.json()["updated_at"] > session.updated_at.isoformat()


def test_a_change_is_told_to_open_pages(api: APIClient, session: Session) -> None:
    api.patch(f"{SESSIONS}/{session.pk}", {"title": "New"})
    assert session.events.get().name == "session.updated"


def test_a_deleted_session_is_gone(api: APIClient, session: Session) -> None:
    assert api.delete(f"{SESSIONS}/{session.pk}").status_code == 204
    assert api.get(f"{SESSIONS}/{session.pk}").status_code == 404


def test_the_list_is_filtered_by_words_of_the_title_and_by_flags(
    api: APIClient, user: User, model: AiModel
) -> None:
    for title, flags in (
        ("Trip to Rome", {"pinned": True}),
        ("Tax", {"archived": True}),
        ("A trip", {}),
    ):
        Session.objects.create(owner=user, title=title, **flags)

    def titles(query: str) -> set[str]:
        return {row["title"] for row in api.get(f"{SESSIONS}?{query}").json()["results"]}

    assert titles("q=TRIP") == {"Trip to Rome", "A trip"}
    assert titles("archived=true") == {"Tax"}
    assert titles("archived=false&pinned=true") == {"Trip to Rome"}
    assert titles("q=%00") == {"Trip to Rome", "Tax", "A trip"}
    assert api.get(f"{SESSIONS}?pinned=perhaps").json()["errors"][0]["field"] == "pinned"


def test_an_address_may_end_in_a_slash(api: APIClient, session: Session) -> None:
    assert (
        api.get(f"{SESSIONS}/").status_code
        == api.get(f"{SESSIONS}/{session.pk}/").status_code
        == 200
    )


def test_nul_and_lone_surrogates_are_cleaned_not_refused(api: APIClient, model: AiModel) -> None:
    params = r'{"verbosity\u0000": "\udfff\u0000x", "stop": "\ud83d\ude00"}'
    raw = r'{"title": "a\u0000b\ud800c", "params": ' + params + "}"
    response = api.post(SESSIONS, raw, content_type="application/json")
    assert (response.status_code, response.json()["title"]) == (201, "abc")
    assert response.json()["params"] == {"verbosity": "x", "stop": "😀"}


def test_a_system_prompt_over_256_kb_is_413(api: APIClient, model: AiModel) -> None:
    assert api.post(SESSIONS, {"system_prompt": "é" * (128 * 1024)}).status_code == 201
    assert api.post(SESSIONS, {"system_prompt": "é" * (128 * 1024) + "x"}).status_code == 413


def test_everything_of_another_user_is_404(
    session: Session, as_user: Callable[[User], APIClient]
) -> None:
    stranger = as_user(User.objects.create_user("mallory"))
    one = f"{SESSIONS}/{session.pk}"
    refusals = [
        stranger.get(one),
        stranger.patch(one, {"title": "Mine"}),
        stranger.delete(one),
        stranger.get(f"{one}/messages"),
        stranger.post(f"{one}/messages", {"content": "Hi"}),
        stranger.post(f"{one}/messages/import", {"messages": []}),
        stranger.post(f"{one}/cancel"),
        stranger.get(f"{one}/events"),
        stranger.get(f"{one}/context/preview"),
        stranger.patch(f"{one}/summary", {"summary": "Mine"}),
        stranger.delete(f"{one}/summary"),
        stranger.get(f"{one}/search?q=x"),
    ]
    assert [response.status_code for response in refusals] == [404] * len(refusals)
    assert stranger.get(SESSIONS).json()["results"] == []


@pytest.mark.parametrize("value", ["0.7", True, 1.01, -0.1, 0.25, 0.1])
def test_a_threshold_that_cannot_be_is_refused_by_its_name(
    api: APIClient, session: Session, value: object
) -> None:
    refusal = api.patch(f"{SESSIONS}/{session.pk}", {"compact_threshold": value})
    assert (refusal.status_code, refusal.json()["errors"][0]["field"]) == (400, "compact_threshold")


def test_a_threshold_is_measured_by_the_policy_that_comes_with_it(
    api: APIClient, session: Session
) -> None:
    address = f"{SESSIONS}/{session.pk}"
    assert api.patch(address, {"compact_threshold": 0.2, "policy": "neurolink"}).status_code == 200
    assert api.patch(address, {"title": "Still fine"}).status_code == 200
    refusal = api.patch(address, {"policy": "oneclaw"})
    assert (refusal.status_code, refusal.json()["errors"][0]["field"]) == (400, "compact_threshold")
    assert api.patch(address, {"policy": "oneclaw", "compact_threshold": None}).status_code == 200


def test_a_session_s_own_threshold_is_where_it_is_compacted(
    api: APIClient, session: Session
) -> None:
    address = f"{SESSIONS}/{session.pk}"
    assert api.get(f"{address}/context").json()["threshold_tokens"] == 6_963
    api.patch(address, {"compact_threshold": 0.5})
    assert api.get(f"{address}/context").json()["threshold_tokens"] == 4_096


def test_a_session_that_is_deleted_while_it_is_changed_is_404(
    api: APIClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    from chatcore.api import sessions

    def delete_and_record(session_id: UUID, values: dict[str, Any]) -> None:
        Session.objects.get(pk=session_id).delete()
        record_session_change(session_id, values)

    record_session_change = sessions.record_session_change
    monkeypatch.setattr(sessions, "record_session_change", delete_and_record)
    assert api.patch(f"{SESSIONS}/{session.pk}", {"title": "Too late"}).status_code == 404


def test_a_summary_of_a_session_that_is_deleted_meanwhile_is_404(
    api: APIClient, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    revisions.install_revision(
        session.pk, base_version=0, summary="Tea.", boundary_seq=None, source="compaction"
    )

    def deleted(*args: Any, **kwargs: Any) -> None:
        Session.objects.get(pk=session.pk).delete()
        reworded(*args, **kwargs)

    reworded = revisions.reword_summary
    monkeypatch.setattr(revisions, "reword_summary", deleted)
    assert api.patch(f"{SESSIONS}/{session.pk}/summary", {"summary": "Coffee."}).status_code == 404


def test_a_title_of_blanks_is_none(api: APIClient) -> None:
    # Invisible signs too: a joiner, a filler of Korean, empty Braille, a mark of direction.
    for blank in (" \t\n\u3000 ", "\u200b\u2060", "\u3164", "\u2800\ufe0f", "\u202e"):
        created = api.post(SESSIONS, {"title": blank}).json()
        assert created["title"] == ""
    assert api.post(SESSIONS, {"title": "\U0001fae8"}).json()["title"] == "\U0001fae8"
    changed = api.patch(f"{SESSIONS}/{created['id']}", {"title": "  A trip\n"})
    assert changed.json()["title"] == "A trip"
