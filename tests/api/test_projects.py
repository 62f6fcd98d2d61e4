"""Projects over REST: what they say, their files, and the sessions in them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from chatcore.contrib.holds.models import Hold
from chatcore.files import output_store
from chatcore.files.settings import build_folder_storage
from chatcore.models import Project, ProjectFile, Session
from chatcore.projects import changes
from tests.support.sample_files import build_pdf, build_png

pytestmark = pytest.mark.django_db
NOBODY = "00000000-0000-4000-8000-000000000000"
PROJECTS, SESSIONS = "/api/v1/projects", "/api/v1/sessions"
LISBON = {"name": "Lisbon", "instructions": "Be a guide.", "rules": ["Prices in euros.", "No map."]}


@pytest.fixture
def address(api: APIClient) -> str:
    """A project of Alice's."""
    return f"{PROJECTS}/{api.post(PROJECTS, LISBON).json()['id']}"


def upload(api: APIClient, address: str, name: str, data: bytes) -> Any:
    form = {"file": SimpleUploadedFile(name, data)}
    return api.post(f"{address}/files", form, format="multipart")


def read_errors(response: Any) -> dict[str, str]:
    assert response.status_code == 400, response.content
    return {error["field"]: error["detail"] for error in response.json()["errors"]}


def test_it_says_what_was_written_word_for_word(api: APIClient) -> None:
    rules = ["  Two spaces before.", "Nie „vielleicht“ sagen."]
    made = api.post(PROJECTS, {"name": " Lisbon ", "instructions": " a\n\nb ", "rules": rules})
    assert made.status_code == 201
    project = made.json()
    assert (project["name"], project["instructions"]) == ("Lisbon", " a\n\nb ")
    assert project["rules"] == rules
    assert api.get(f"{PROJECTS}/{project['id']}").json() == project
    assert api.get(PROJECTS).json()["results"] == [project]


def test_a_change_touches_the_given_fields_only(api: APIClient, address: str) -> None:
    before = api.get(address).json()
    after = api.patch(address, {"rules": ["No map.", "Prices in euros."]}).json()
    assert after["rules"] == ["No map.", "Prices in euros."]
    assert after["edited_at"] > before["edited_at"]
    assert {**after, "rules": [], "edited_at": ""} == {**before, "rules": [], "edited_at": ""}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", " "),
        ("name", "x" * 201),
        ("name", 5),
        ("rules", ["a\nb"]),
        ("rules", ["a\n"]),
        ("rules", ["  "]),
        ("rules", ["x" * 501]),
        ("rules", ["x"] * 51),
        ("rules", "No map."),
        ("instructions", None),
        ("id", NOBODY),
        ("edited_at", "2026-01-01T00:00:00Z"),
        ("colour", "blue"),
    ],
)
def test_a_bad_field_is_named(api: APIClient, address: str, field: str, value: Any) -> None:
    before = api.get(address).json()
    errors = read_errors(api.patch(address, {field: value}))
    assert [name.partition("[")[0].partition(".")[0] for name in errors] == [field]
    assert api.get(address).json() == before
    assert api.post(PROJECTS, {**LISBON, field: value}).status_code == 400


def test_instructions_are_bounded_as_a_system_prompt_is(api: APIClient, address: str) -> None:
    assert api.patch(address, {"instructions": "x" * 256 * 1024}).status_code == 200
    assert api.patch(address, {"instructions": "x" * (256 * 1024 + 1)}).status_code == 413


def test_nobody_has_more_projects_than_anyone_may(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MAX_PROJECTS", 1)
    assert api.post(PROJECTS, LISBON).status_code == 201
    assert "name" in read_errors(api.post(PROJECTS, LISBON))


def test_a_file_is_kept_as_it_came_listed_and_deleted(api: APIClient, address: str) -> None:
    before = api.get(address)["ETag"]
    made = upload(api, address, "../trains.txt", b"9:05")
    assert made.status_code == 201
    file = made.json()
    assert (file["name"], file["media_type"], file["size"]) == ("trains.txt", "text/plain", 4)
    assert api.get(address)["ETag"] != before
    assert api.get(f"{address}/files").json()["results"] == [file]
    download = api.get(f"{address}/files/{file['id']}")
    assert (download.content, download["X-Content-Type-Options"]) == (b"9:05", "nosniff")
    assert "attachment" in download["Content-Disposition"]
    assert api.delete(f"{address}/files/{file['id']}").status_code == 204
    assert api.get(f"{address}/files").json()["results"] == []
    assert api.get(f"{address}/files/{file['id']}").status_code == 404


def test_a_pdf_file_is_sent_as_its_text_and_downloaded_as_it_is(
    api: APIClient, address: str
) -> None:
    pdf = build_pdf("The museum opens at ten.")
    file = upload(api, address, "museum.pdf", pdf).json()
    assert api.get(f"{address}/files/{file['id']}").content == pdf
    assert "museum opens at ten" in ProjectFile.objects.get().text


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("a.png", build_png(4, 4), "only files with text"),
        ("a.txt", b"", "empty"),
        ("a.txt", b" \n", "only files with text"),
        ("a.bin", b"\x00\x01\x02", "something else"),
    ],
)
def test_a_file_without_text_is_refused(
    api: APIClient, address: str, name: str, data: bytes, words: str
) -> None:
    assert words in read_errors(upload(api, address, name, data))["file"]
    assert not ProjectFile.objects.exists()


def test_a_project_takes_no_more_files_than_a_message(
    api: APIClient, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert changes.MAX_FILES == 20
    monkeypatch.setattr(changes, "MAX_FILES", 1)
    assert upload(api, address, "a.txt", b"a").status_code == 201
    refusal = upload(api, address, "b.txt", b"b")
    assert (refusal.status_code, refusal.json()["type"]) == (409, "too_many_files")


@pytest.fixture
def store(tmp_path: Path, settings: LazySettings) -> Path:
    """Keeps the bytes of files in a folder."""
    folder = tmp_path / "outputs"
    settings.STORAGES = {**settings.STORAGES, output_store.ALIAS: build_folder_storage(folder)}
    settings.CHATCORE = {**settings.CHATCORE, "FILES_IN_STORE": True}
    return folder


def list_objects(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.django_db(transaction=True)
def test_bytes_in_the_store_go_with_the_file_and_with_the_project(
    api: APIClient, address: str, store: Path
) -> None:
    pdf = build_pdf("Hello")
    first, _ = (upload(api, address, name, pdf).json() for name in ("a.pdf", "b.pdf"))
    assert len(list_objects(store)) == 2
    assert api.get(f"{address}/files/{first['id']}").content == pdf
    names = list(ProjectFile.objects.values_list("store_name", flat=True))
    assert output_store.delete_unused(names) == 0
    api.delete(f"{address}/files/{first['id']}")
    assert len(list_objects(store)) == 1
    api.delete(address)
    assert list_objects(store) == []
    assert not ProjectFile.objects.exists()


def test_a_session_enters_and_leaves_by_its_field(
    api: APIClient, address: str, session: Session
) -> None:
    project_id = address.rpartition("/")[2]
    made = api.post(SESSIONS, {"project": project_id}).json()
    assert made["project"] == project_id
    place = f"{SESSIONS}/{session.pk}"
    assert api.get(place).json()["project"] is None
    assert api.patch(place, {"project": project_id}).json()["project"] == project_id
    listed = api.get(f"{SESSIONS}?project={project_id}").json()["results"]
    assert {row["id"] for row in listed} == {made["id"], str(session.pk)}
    assert api.patch(place, {"project": None}).json()["project"] is None
    listed = api.get(f"{SESSIONS}?project={project_id}").json()["results"]
    assert [row["id"] for row in listed] == [made["id"]]


@pytest.mark.parametrize("value", [5, "", "x", [], NOBODY])
def test_no_session_enters_what_is_no_project(api: APIClient, session: Session, value: Any) -> None:
    for response in (
        api.patch(f"{SESSIONS}/{session.pk}", {"project": value}),
        api.post(SESSIONS, {"project": value}),
    ):
        assert list(read_errors(response)) == ["project"]
    assert "project" in read_errors(api.get(f"{SESSIONS}?project=x"))


def test_a_project_of_somebody_else_does_not_exist(
    address: str, session: Session, as_user: Callable[[User], APIClient]
) -> None:
    mallory = as_user(User.objects.create_user("mallory"))
    project_id = address.rpartition("/")[2]
    unknown, foreign = (
        mallory.post(SESSIONS, {"project": value}).json() for value in (NOBODY, project_id)
    )
    assert unknown["errors"] == foreign["errors"]
    assert mallory.get(f"{SESSIONS}?project={project_id}").json()["results"] == []
    for method in (mallory.get, mallory.patch, mallory.delete):
        assert method(address).status_code == 404
    assert Project.objects.count() == 1


def test_a_deleted_project_keeps_its_chats(api: APIClient, address: str, session: Session) -> None:
    place = f"{SESSIONS}/{session.pk}"
    api.patch(place, {"project": address.rpartition("/")[2]})
    stale = api.get(address)["ETag"]
    api.patch(address, {"name": "Porto"})
    assert api.delete(address, headers={"If-Match": stale}).status_code == 412
    assert api.delete(address).status_code == 204
    assert api.get(place).json()["project"] is None
    assert api.get(address).status_code == 404


def test_nothing_of_somebody_on_legal_hold_is_deleted(
    api: APIClient, address: str, user: User
) -> None:
    file = upload(api, address, "a.txt", b"a").json()
    Hold.objects.create(user=user, reason="Case 5")
    for path in (address, f"{address}/files/{file['id']}"):
        assert (api.delete(path).status_code, api.get(path).status_code) == (409, 200)


def test_a_temporary_chat_may_be_in_a_project(api: APIClient, address: str) -> None:
    fields = {"project": address.rpartition("/")[2], "temporary": True}
    assert api.post(SESSIONS, fields).json()["project"] == fields["project"]
