"""If-Match: a change of the summary is applied to the version that the client saw, or refused."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connections
from rest_framework.response import Response
from rest_framework.test import APIClient

from chatcore.context import revisions
from chatcore.models import Message, Session
from compaction.models import CompactionRun
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
MATCHING_TAGS = ['"1"', "1", '"7", "1"', "*"]
OTHER_TAGS = ['"2"', "2", '"0", "2"', 'W/"1"', "", "one"]


@pytest.fixture
def summarized_session(session: Session) -> Session:
    """Twenty messages, the first two of them summarized: version 1."""
    Message.objects.bulk_create(
        Message(session=session, seq=n, role=("assistant", "user")[n % 2], content="tea " * 700)
        for n in range(1, 21)
    )
    Session.objects.filter(pk=session.pk).update(last_seq=20, message_count=20)
    revisions.install_revision(
        session.pk, base_version=0, summary="Likes tea.", boundary_seq=3, source="compaction"
    )
    return session


@pytest.fixture
def address(summarized_session: Session) -> str:
    return f"/api/v1/sessions/{summarized_session.pk}"


def build_if_match(version: str) -> dict[str, str]:
    return {"If-Match": version}


def test_the_etag_of_the_context_is_its_version(api: APIClient, address: str) -> None:
    for known, place in (('"1"', "context"), ('"1"', "context/preview")):
        assert api.get(f"{address}/{place}")["ETag"] == known
    edit = api.patch(
        f"{address}/summary",
        {"summary": "Likes coffee."},
        headers=build_if_match(api.get(f"{address}/context")["ETag"]),
    )
    assert (edit.status_code, edit["ETag"]) == (200, '"2"')
    assert api.get(f"{address}/context")["ETag"] == '"2"'


@pytest.mark.parametrize(
    ("place", "values"),
    [
        ("sessions", {"title": "Tea"}),
        ("projects", {"name": "Tea"}),
        ("prompts", {"name": "tea", "text": "Tea, please."}),
        ("webhooks", {"url": "https://example.org/tea"}),
    ],
)
def test_what_a_client_has_already_is_not_sent_again(
    api: APIClient, place: str, values: dict[str, str]
) -> None:
    address = f"/api/v1/{place}/{api.post(f'/api/v1/{place}', values).json()['id']}"
    tag = api.get(address)["ETag"]
    again = api.get(address, headers={"If-None-Match": tag})
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", tag)
    assert api.get(address, headers={"If-None-Match": '"other"'}).status_code == 200
    api.patch(address, {next(iter(values)): "tee" if place != "webhooks" else f"{values['url']}/2"})
    assert api.get(address, headers={"If-None-Match": tag}).status_code == 200


@pytest.mark.parametrize("known", MATCHING_TAGS)
def test_a_change_over_the_known_version_is_made(api: APIClient, address: str, known: str) -> None:
    assert (
        api.patch(
            f"{address}/summary", {"summary": "Likes coffee."}, headers=build_if_match(known)
        ).status_code
        == 200
    )


@pytest.mark.parametrize("other", OTHER_TAGS[:4])
def test_a_change_over_another_version_is_412_and_changes_nothing(
    api: APIClient, address: str, summarized_session: Session, other: str
) -> None:
    refusals = [
        api.patch(
            f"{address}/summary", {"summary": "Likes coffee."}, headers=build_if_match(other)
        ),
        api.delete(f"{address}/summary", headers=build_if_match(other)),
    ]
    for refusal in refusals:
        assert (refusal.status_code, refusal["Content-Type"]) == (412, "application/problem+json")
        assert (refusal.json()["type"], refusal.json()["context_version"]) == ("context_changed", 1)
    summarized_session.refresh_from_db()
    assert (summarized_session.context_version, summarized_session.compacted_summary) == (
        1,
        "Likes tea.",
    )


@pytest.mark.parametrize("other", OTHER_TAGS[4:])
def test_a_condition_that_names_no_version_is_never_met(
    api: APIClient, address: str, other: str
) -> None:
    assert api.delete(f"{address}/summary", headers=build_if_match(other)).status_code == 412


def test_a_reset_over_the_known_version_is_made(api: APIClient, address: str) -> None:
    assert api.delete(f"{address}/summary", headers=build_if_match('"1"')).status_code == 204
    assert api.get(f"{address}/context")["ETag"] == '"2"'


def test_a_rewind_is_made_over_the_known_version_only(
    api: APIClient, address: str, summarized_session: Session, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(
        text="They talked about tea at length; nothing was decided.", usage=(800, 12)
    )
    run = api.post(f"{address}/compact", {"wait": True}).json()
    assert run["status"] == "applied"
    rewind = f"/api/v1/compactions/{run['id']}/rewind"
    refusal = api.post(rewind, headers=build_if_match('"1"'))
    assert (refusal.status_code, refusal.json()["type"]) == (412, "context_changed")
    assert CompactionRun.objects.get().status == "applied"
    rewound_run = api.post(rewind, headers=build_if_match(api.get(f"{address}/context")["ETag"]))
    assert (rewound_run.status_code, rewound_run.json()["status"]) == (200, "rewound")


def test_of_changes_over_one_version_at_once_exactly_one_is_made(
    api: APIClient, address: str, summarized_session: Session
) -> None:
    def change(number: int) -> Response:
        try:
            return api.patch(
                f"{address}/summary",
                {"summary": f"Number {number}."},
                headers=build_if_match('"1"'),
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as pool:
        answers = sorted(answer.status_code for answer in pool.map(change, range(4)))
    assert answers == [200, 412, 412, 412]
    summarized_session.refresh_from_db()
    assert summarized_session.context_version == 2
