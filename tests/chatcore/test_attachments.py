"""Files that come with messages: uploaded over real HTTP, limited, sent and removed."""

import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.files import intake
from chatcore.models import Attachment, Session
from tests.conftest import Live
from tests.support.attachment_requests import MB, say, upload
from tests.support.scripted_model import ScriptedModel

answering = pytest.mark.django_db(transaction=True)  # turns are answered in another thread


@answering
def test_a_file_is_uploaded_sent_and_shown_with_its_message(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    created = upload(api, session, "Grüße aus Köln".encode())
    assert created.status_code == 201
    assert created["Location"] == f"/api/v1/attachments/{created.json()['id']}"
    told = {"name": "notes.txt", "media_type": "text/plain", "size": 17, "kind": "file"}
    assert {name: created.json()[name] for name in told} == told
    answered = say(api, session, [created.json()["id"]])
    assert answered.status_code == 201, answered.json()
    assert answered.json()["user_message"]["attachments"] == [created.json()]
    sent = scripted.requests[-1].json["messages"][-1]["content"]
    assert sent == 'Look.\n\n<attached_file name="notes.txt">\nGrüße aus Köln\n</attached_file>'


def test_the_download_is_what_was_uploaded_and_no_page_of_ours(
    api: APIClient, session: Session
) -> None:
    data = "<script>alert(1)</script>".encode("utf-16")
    stored = upload(api, session, data, 'evil".html').json()
    fetched = api.get(f"/api/v1/attachments/{stored['id']}")
    assert fetched.content == data
    assert fetched["Content-Type"] == "text/plain"
    assert fetched["Content-Disposition"].startswith("attachment;")
    assert fetched["X-Content-Type-Options"] == "nosniff"
    assert fetched["Content-Security-Policy"] == "sandbox; default-src 'none'"


def test_no_file_may_have_more_than_ten_megabytes(api: APIClient, session: Session) -> None:
    assert upload(api, session, b"x" * (10 * MB)).status_code == 201
    assert upload(api, session, b"x" * (10 * MB + 1)).status_code == 413
    assert upload(api, session, b"x" * (12 * MB)).status_code == 413
    assert Attachment.objects.count() == 1


@pytest.mark.parametrize("form", [{}, {"other": "1"}, {"file": "no file"}])
def test_a_form_has_one_file_and_nothing_else(
    api: APIClient, session: Session, form: dict[str, str]
) -> None:
    refused = api.post(f"/api/v1/sessions/{session.pk}/attachments", form, format="multipart")
    assert refused.status_code == 400
    two = {"file": [SimpleUploadedFile("a", b"a"), SimpleUploadedFile("b", b"b")]}
    assert (
        api.post(f"/api/v1/sessions/{session.pk}/attachments", two, format="multipart").status_code
        == 400
    )
    assert upload(api, session, b"a", other="1").json()["errors"][0]["field"] == "other"


def test_only_forms_are_taken(api: APIClient, session: Session) -> None:
    assert api.post(f"/api/v1/sessions/{session.pk}/attachments", {"file": "x"}).status_code == 415
    broken = api.post(
        f"/api/v1/sessions/{session.pk}/attachments",
        b"junk",
        content_type="multipart/form-data; boundary=x",
    )
    assert broken.status_code == 400


@pytest.mark.parametrize(
    ("given", "field"),
    [
        (["nonsense"], "attachments[0]"),
        ([7], "attachments[0]"),
        ([str(uuid4())], "attachments[0]"),
        ([{"name": "a"}], "attachments[0].data"),
        ([{"name": "a", "data": "%%%"}], "attachments[0].data"),
        ([{"name": "a", "data": "AAAA"}], "attachments[0].data"),
        ([{"name": "a", "data": "YQ==", "size": 1}], "attachments[0].size"),
        ([str(uuid4())] * 21, "attachments"),
        ("text", "attachments"),
    ],
)
def test_a_message_names_what_is_there(
    api: APIClient, session: Session, given: Any, field: str
) -> None:
    refused = say(api, session, given)
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, field), (
        refused.json()
    )
    assert not session.messages.exists()


@answering
def test_a_file_is_sent_once_and_in_its_own_session_only(
    api: APIClient, session: Session, user: User
) -> None:
    first = upload(api, session, b"one").json()["id"]
    other = Session.objects.create(owner=user, model=session.model)
    assert say(api, other, [first]).status_code == 400
    assert say(api, session, [first, first]).json()["errors"][0]["field"] == "attachments[1]"
    assert say(api, session, [first]).status_code == 201
    assert say(api, session, [first]).status_code == 400
    assert session.messages.filter(role="user").count() == 1


def test_nobody_else_finds_it(
    api: APIClient, session: Session, as_user: Callable[[User], APIClient]
) -> None:
    stored = upload(api, session, b"mine").json()["id"]
    bob = as_user(User.objects.create_user("bob", password="bob's password"))
    assert bob.get(f"/api/v1/attachments/{stored}").status_code == 404
    assert bob.delete(f"/api/v1/attachments/{stored}").status_code == 404
    assert upload(bob, session, b"his").status_code == 404
    assert APIClient().get(f"/api/v1/attachments/{stored}").status_code == 401
    assert api.get(f"/api/v1/attachments/{uuid4()}").status_code == 404


@answering
def test_what_was_not_sent_can_be_taken_back_and_what_was_cannot(
    api: APIClient, session: Session
) -> None:
    kept, gone = (upload(api, session, data).json()["id"] for data in (b"kept", b"gone"))
    assert api.delete(f"/api/v1/attachments/{gone}").status_code == 204
    assert api.get(f"/api/v1/attachments/{gone}").status_code == 404
    assert say(api, session, [kept]).status_code == 201
    assert api.delete(f"/api/v1/attachments/{kept}").status_code == 409
    assert api.get(f"/api/v1/attachments/{kept}").content == b"kept"


@answering
def test_what_is_never_sent_is_forgotten_after_a_day(api: APIClient, session: Session) -> None:
    sent, old, new = (upload(api, session, data).json()["id"] for data in (b"sent", b"old", b"new"))
    assert say(api, session, [sent]).status_code == 201
    Attachment.objects.exclude(pk=new).update(
        created_at=timezone.now() - timedelta(days=1, minutes=1)
    )
    assert intake.prune_unsent_files() == 1
    assert {str(pk) for pk in Attachment.objects.values_list("pk", flat=True)} == {sent, new}
    assert old not in {sent, new}


def test_a_session_keeps_only_so_many_files_that_wait(api: APIClient, session: Session) -> None:
    Attachment.objects.bulk_create(
        Attachment(session=session, name="w", media_type="text/plain", size=1, data=b"w")
        for _ in range(40)
    )
    refused = upload(api, session, b"one more")
    assert (refused.status_code, refused.json()["type"]) == (409, "too_many_files_wait")


@answering
def test_another_version_of_a_message_has_its_files_too(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    said = say(api, session, [upload(api, session, b"the facts").json()["id"]]).json()[
        "user_message"
    ]
    again = api.patch(f"/api/v1/messages/{said['id']}", {"content": "Look again."})
    assert again.status_code == 201, again.json()
    assert [each["name"] for each in again.json()["user_message"]["attachments"]] == ["notes.txt"]
    assert (
        scripted.requests[-1]
        .json["messages"][-1]["content"]
        .endswith("\nthe facts\n</attached_file>")
    )
    assert Attachment.objects.count() == 2


@answering
def test_the_same_key_with_a_file_gives_the_same_turn(api: APIClient, session: Session) -> None:
    body = {"content": "Look.", "attachments": [{"name": "a.txt", "data": "YQ=="}]}
    first, again = (
        api.post(f"/api/v1/sessions/{session.pk}/messages", body, headers={"Idempotency-Key": "k"})
        for _ in range(2)
    )
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json()["turn"] == again.json()["turn"]
    assert session.messages.filter(role="user").count() == 1


@answering
def test_an_upload_over_a_real_server_in_chunks(live: Live, session: Session) -> None:
    """A body that names no length, as `curl -T -` sends it."""
    _, token = AuthToken.objects.create(session.owner)
    boundary = "b0undary"
    disposition = 'Content-Disposition: form-data; name="file"; filename="big.txt"'
    head = f"--{boundary}\r\n{disposition}\r\n\r\n".encode()
    pieces = [head, *([b"x" * MB] * 5), f"\r\n--{boundary}--\r\n".encode()]
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": f"multipart/form-data; boundary={boundary}",
    }
    answer = httpx2.post(
        f"{live.url}/api/v1/sessions/{session.pk}/attachments",
        content=iter(pieces),
        headers=headers,
        timeout=60,
    )
    assert (answer.status_code, answer.json()["size"]) == (201, 5 * MB)
    too_much = iter([head, *([b"x" * MB] * 11), f"\r\n--{boundary}--\r\n".encode()])
    answer = httpx2.post(
        f"{live.url}/api/v1/sessions/{session.pk}/attachments",
        content=too_much,
        headers=headers,
        timeout=60,
    )
    assert (answer.status_code, json.loads(answer.text)["type"]) == (413, "too_large")
