"""Everything comes in at once, leaves as one archive, and is the same where it comes in next."""

import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from chatcore.models import Project, Session
from tests.conftest import Live
from tests.support.exports import list_exports, list_files, load_export, pack

pytestmark = pytest.mark.django_db(transaction=True)


def read_archive(name: str, folder: Path) -> bytes:
    path = folder / "archive.zip"
    path.unlink(missing_ok=True)
    call_command("export_user", name, str(path), stdout=io.StringIO())
    return path.read_bytes()


def list_chats(archive: bytes) -> list[dict[str, Any]]:
    """Return the sessions of an archive, which has no order; branches by number, not by id."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        texts = [file.read(name) for name in file.namelist() if name.startswith("sessions/")]
    chats = [json.loads(text) for text in texts]
    for chat in chats:
        numbers: dict[str, int] = {}
        for message in chat["messages"]:
            if branch := message.get("branch"):
                message["branch"] = numbers.setdefault(branch, len(numbers))
    return sorted(chats, key=lambda chat: json.dumps(chat, sort_keys=True))


def send(api: APIClient, archive: Any) -> Any:
    answer = api.generic("POST", "/api/v1/imports?name=all.zip", archive, "application/zip")
    assert answer.status_code == 201, answer.json()
    return answer.json()


def list_projects(owner: Any) -> list[Any]:
    return [
        (
            project.name,
            project.instructions,
            sorted(project.files.values_list("name", "text")),
            sorted(project.sessions.values_list("title", flat=True)),
        )
        for project in Project.objects.filter(owner__username=owner)
    ]


@pytest.mark.slow
def test_what_every_product_exports_comes_in_and_moves_on_to_the_byte(
    api: APIClient, as_user: Callable[[User], APIClient], tmp_path: Path
) -> None:
    stranger = as_user(User.objects.create_user("bob"))
    names = list_exports()
    assert len(names) >= 60
    exports = [load_export(name) for name in names]
    files = [(f"{name}.zip", pack(list_files(load_export(name)))) for name in names]
    came = send(api, pack(files))
    assert came["came"] + came["partly"] >= sum(len(export["shown"]) for export in exports)
    assert came["projects"] == 3
    boat = Project.objects.get(name="Boat")
    Session.objects.filter(title="Knots").update(project=boat)

    archive = read_archive("alice", tmp_path)
    moved = send(stranger, archive)
    assert (moved["came"], moved["partly"], moved["refusals"]) == (
        came["came"] + came["partly"],
        0,
        [],
    )
    assert list_chats(read_archive("bob", tmp_path)) == list_chats(archive)
    assert list_projects("bob") == list_projects("alice")
    assert ("Boat", ["Knots"]) in [(name, chats) for name, _, _, chats in list_projects("bob")]
    again = send(stranger, archive)
    assert (again["came"], again["known"], again["projects"]) == (0, moved["came"], 0)


def test_a_browser_downloads_all_of_the_archive(user: User, session: Session, live: Live) -> None:
    """The user of a request by cookie is a lazy object, which once broke the archive off."""
    client = Client()
    client.force_login(user)
    headers = {"Cookie": f"sessionid={client.cookies['sessionid'].value}"}
    answer = httpx2.get(f"{live.url}/api/v1/export", headers=headers, timeout=60)
    with zipfile.ZipFile(io.BytesIO(answer.content)) as file:
        assert f"sessions/{session.pk}.json" in file.namelist()
