"""Legal holds: no edit takes words of a held person, and nobody but the operators sees why."""

import io
import re
import zipfile
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.imports.jobs import prune_imports
from chatcore.contrib.imports.models import Import
from chatcore.contrib.webhooks.models import Webhook
from chatcore.files.intake import prune_unsent_files
from chatcore.models import Attachment, Project, Session
from chatcore.transfer.user_export import write_user_export
from chatcore.web.titles.writing import store_title
from compaction.memory.models import LedgerLine, StandingRule

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "The well is under the old oak."


@pytest.fixture
def held(session: Session, user: User) -> Session:
    """A session of somebody on legal hold, who has words in every place."""
    Session.objects.filter(pk=session.pk).update(title=WORDS, system_prompt=WORDS)
    Project.objects.create(owner=user, name=WORDS, instructions=WORDS, rules=[WORDS])
    StandingRule.objects.create(owner=user, kind="rule", text=WORDS)
    LedgerLine.objects.create(session=session, kind="rule", text=WORDS, key="k")
    Webhook.objects.create(owner=user, url="https://example.com/well")
    Import.objects.create(owner=user, status=Import.Status.DONE, finished_at=timezone.now())
    Hold.objects.create(user=user, reason="The case of the well.")
    session.refresh_from_db()
    return session


def upload(api: APIClient, session: Session) -> str:
    file = SimpleUploadedFile("well.txt", WORDS.encode())
    path = f"/api/v1/sessions/{session.pk}/attachments"
    answer = api.post(path, {"file": file}, format="multipart")
    assert answer.status_code == 201, answer.content
    return str(answer.json()["id"])


def list_edits(session: Session, file: str) -> list[tuple[str, str, dict[str, Any]]]:
    """Return requests that would take the words."""
    of_session = f"/api/v1/sessions/{session.pk}"
    project = f"/api/v1/projects/{Project.objects.get().pk}"
    rule = f"/api/v1/rules/{StandingRule.objects.get().pk}"
    line = f"{of_session}/ledger/{LedgerLine.objects.get().pk}"
    webhook = f"/api/v1/webhooks/{Webhook.objects.get().pk}"
    return [
        ("patch", of_session, {"title": "Other"}),
        ("patch", of_session, {"system_prompt": ""}),
        ("patch", project, {"name": "Other"}),
        ("patch", project, {"instructions": "Other"}),
        ("patch", project, {"rules": []}),
        ("delete", project, {}),
        ("patch", rule, {"text": "Other"}),
        ("delete", rule, {}),
        ("patch", line, {"text": "Other"}),
        ("delete", line, {}),
        ("patch", webhook, {"url": "https://example.com/other"}),
        ("delete", webhook, {}),
        ("delete", f"/api/v1/attachments/{file}", {}),
        ("delete", f"/api/v1/imports/{Import.objects.get().pk}", {}),
    ]


def test_no_edit_by_the_api_takes_words(api: APIClient, held: Session) -> None:
    file = upload(api, held)
    for method, path, body in list_edits(held, file):
        answer = getattr(api, method)(path, body)
        assert (answer.status_code, answer.json()["type"]) == (409, "on_hold"), (method, path, body)
    Hold.objects.update(ended_at=timezone.now())
    for method, path, body in list_edits(held, file)[:4]:
        assert getattr(api, method)(path, body).status_code == 200, path


def test_words_may_be_added_and_other_things_changed(api: APIClient, held: Session) -> None:
    path = f"/api/v1/sessions/{held.pk}"
    for body in ({"system_prompt": f"{WORDS} Dig."}, {"title": WORDS}, {"pinned": True}):
        assert api.patch(path, body).status_code == 200, body
    project = f"/api/v1/projects/{Project.objects.get().pk}"
    assert api.patch(project, {"rules": ["New.", WORDS]}).status_code == 200
    webhook = f"/api/v1/webhooks/{Webhook.objects.get().pk}"
    assert api.patch(webhook, {"is_active": False}).status_code == 200


@pytest.mark.parametrize("prompt", ["", "Other."])
def test_a_client_that_sends_other_instructions_takes_no_words(
    api: APIClient, held: Session, prompt: str
) -> None:
    body = {
        "model": "scripted/test-model",
        "messages": [{"role": "system", "content": prompt}, {"role": "user", "content": "Hi"}],
    }
    answer = api.post("/v1/chat/completions", body, headers={"X-Session-Id": str(held.pk)})
    assert answer.status_code == 409
    held.refresh_from_db()
    assert held.system_prompt == WORDS


def test_no_page_and_no_model_takes_words(client: Client, held: Session, user: User) -> None:
    client.force_login(user)
    project = Project.objects.get()
    for path, fields in (
        (reverse("rename_chat", args=[held.pk]), {"title": "Other"}),
        (f"/projects/{project.pk}/edit/", {"name": "Other", "instructions": ""}),
        (f"/projects/{project.pk}/rules/", {"rules": "Other"}),
    ):
        assert client.post(path, fields).status_code == 409, path
    assert not store_title(held.pk, "Other", old_title=WORDS, source_seqs=[])


@pytest.mark.parametrize(("language", "word"), [("de", "rechtlichen"), ("fr", "légales")])
def test_a_page_refuses_in_the_persons_language(
    client: Client, held: Session, user: User, language: str, word: str
) -> None:
    client.force_login(user)
    client.cookies["django_language"] = language
    address = reverse("rename_chat", args=[held.pk])
    answer = client.post(address, {"title": "Something else"})
    assert (answer.status_code, word in answer.content.decode()) == (409, True)


def test_no_form_of_the_admin_takes_words(admin_client: Client, held: Session) -> None:
    page = reverse("admin:chatcore_session_change", args=[held.pk])
    fields = {"title": "Other", "system_prompt": WORDS, "tools": "null", "params": "{}"}
    answer = admin_client.post(page, fields | {"model": str(held.model_id)})
    assert "kept for legal reasons" in answer.content.decode()
    webhook = Webhook.objects.get()
    for act in ("change", "delete"):
        path = reverse(f"admin:webhooks_webhook_{act}", args=[webhook.pk])
        admin_client.post(path, {"url": "https://example.com/other", "events": "[]", "post": "yes"})
        assert Webhook.objects.get().url == webhook.url


def test_a_hold_is_ended_by_a_button_and_goes_with_its_user(
    admin_client: Client, held: Session, user: User
) -> None:
    hold, number = Hold.objects.get(), user.pk
    delete_user = reverse("admin:auth_user_delete", args=[number])
    delete_hold = reverse("admin:holds_hold_delete", args=[hold.pk])
    assert admin_client.post(delete_hold, {"post": "yes"}).status_code == 403
    admin_client.post(delete_user, {"post": "yes"})
    assert User.objects.filter(pk=number).exists()
    page = admin_client.get(reverse("admin:holds_hold_change", args=[hold.pk])).content.decode()
    act = re.search(r'formaction="([^"]+)"[^>]*value="end_now"', page)
    assert act, page
    data = {"action": "end_now", "_selected_action": hold.pk, "index": "0"}
    assert admin_client.post(act[1], data).status_code == 302
    hold.refresh_from_db()
    assert hold.ended_at is not None
    assert admin_client.post(delete_user, {"post": "yes"}).status_code == 302
    assert not User.objects.filter(pk=number).exists()
    assert not Hold.objects.exists()
    entry = AuditEntry.objects.get(act="user.erased")
    assert (entry.object_id, entry.detail) == (str(number), "1 sessions, 1 legal holds")
    acts = AuditEntry.objects.filter(object_type="holds.hold", object_id=str(hold.pk))
    assert [entry.act for entry in acts] == ["admin.end_now"]


def test_an_old_file_that_was_never_sent_stays(api: APIClient, held: Session) -> None:
    upload(api, held)
    Attachment.objects.update(created_at=timezone.now() - timedelta(days=400))
    assert prune_unsent_files() == 0
    Hold.objects.update(ended_at=timezone.now())
    assert prune_unsent_files() == 1


def test_the_originals_of_an_old_import_stay(held: Session) -> None:
    Import.objects.update(finished_at=timezone.now() - timedelta(days=60))
    assert prune_imports() == 0
    Hold.objects.update(ended_at=timezone.now())
    assert prune_imports() == 1


def test_the_reason_is_in_no_export(held: Session, user: User) -> None:
    Hold.objects.update(created_by=user)
    file = io.BytesIO()
    write_user_export(user, file)
    with zipfile.ZipFile(file) as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
        assert not [name for name in archive.namelist() if "hold" in name]
    assert WORDS.encode() in content
    assert b"case of the well" not in content
