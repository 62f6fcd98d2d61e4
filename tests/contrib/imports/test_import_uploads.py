"""Imports by upload: pieces, a worker that goes on after a death, and the page at the end."""

import json
import re
from datetime import timedelta
from typing import Any
from zipfile import ZipFile

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.imports import chat_storing
from chatcore.contrib.imports import jobs as import_jobs
from chatcore.contrib.imports import runs as import_runs
from chatcore.contrib.imports.models import Import, ImportedChat, ImportPart
from chatcore.models import Message, Session
from chatcore.sessions.retention import delete_unused_sessions
from tests.support.exports import list_files, load_export, pack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


def build_chats(count: int) -> bytes:
    chats = [
        {"uuid": str(number), "name": f"Chat {number}", "chat_messages": [
            {"uuid": "a", "sender": "human", "content": [{"type": "text", "text": "Hello"}]}
        ]}
        for number in range(count)
    ]  # fmt: skip
    return json.dumps([*chats, {"uuid": "odd", "name": "Odd one"}]).encode()


def upload(api: APIClient, content: bytes, size: int = 100_000) -> Any:
    files = {"files": [{"name": "conversations.json", "size": len(content)}]}
    response = api.post("/api/v1/imports/uploads", files)
    assert response.status_code == 201, response.json()
    [file] = response.json()["files"]
    address = f"/api/v1/imports/{response.json()['id']}"
    for offset in range(0, len(content), size):
        piece: Any = content[offset : offset + size]
        path = f"{address}/files/{file['id']}?offset={offset}"
        answer = api.generic("PUT", path, piece, "application/octet-stream")
        assert answer.status_code == 200, answer.json()
    return address


def test_a_long_session_of_ones_own_comes_back(api: APIClient, client: Client, user: User) -> None:
    session = Session.objects.create(owner=user)
    texts = [f"{number} herons. " * 10_000 for number in range(1, 5)]
    for seq, text in enumerate(texts, start=1):
        Message.objects.create(session=session, seq=seq, role="user", content=text)
    content = api.get(f"/api/v1/sessions/{session.pk}/export").content
    address = upload(api, content)
    assert import_jobs.run_due_jobs() == 1
    assert api.get(address).json()["came"] == 1
    client.force_login(user)
    page = client.get(f"/imports/{address.rsplit('/', 1)[-1]}/").content.decode()
    assert re.search(r"1 chat is here.*Open the newest chat", page, re.DOTALL)
    copy = Session.objects.exclude(pk=session.pk).get()
    assert list(copy.messages.order_by("seq").values_list("content", flat=True)) == texts


def test_an_upload_in_pieces_is_imported_by_a_worker(api: APIClient) -> None:
    address = upload(api, build_chats(3), size=100)
    assert api.get(address).json()["status"] == "waiting"
    assert import_jobs.run_due_jobs() == 1
    result = api.get(address).json()
    assert (result["status"], result["came"], result["refused"]) == ("done", 3, 1)
    [problem] = result["problems"]
    assert (problem["title"], problem["session"]) == ("Odd one", None)
    original = api.get(f"{address}/problems/{problem['id']}/original")
    assert json.loads(original.content) == {"uuid": "odd", "name": "Odd one"}
    assert not ImportPart.objects.exists()


def test_an_import_goes_on_where_its_process_died(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = upload(api, build_chats(4))
    store = chat_storing.store_chat
    stored: list[str] = []

    def die_at_the_third(*args: Any, **kwargs: Any) -> Session:
        if len(stored) == 2:
            raise KeyboardInterrupt
        stored.append("")
        return store(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(chat_storing, "store_chat", die_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            import_jobs.run_due_jobs()
    assert api.get(address).json()["came"] == 2
    assert import_jobs.run_due_jobs() == 0  # its lease has not ended
    lease_until = Import.objects.get().lease_until
    assert lease_until
    assert lease_until < timezone.now() + timedelta(seconds=60)
    Import.objects.update(lease_until="2020-01-01T00:00:00Z")
    assert import_jobs.run_due_jobs() == 1
    result = api.get(address).json()
    assert (result["status"], result["came"], result["refused"]) == ("done", 4, 1)
    assert Session.objects.count() == 4


def test_a_lease_is_renewed_beside_a_long_chat(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = upload(api, build_chats(1))
    store = chat_storing.store_chat

    def wait_for_renewal(*args: Any, **kwargs: Any) -> Session:
        lease_until = Import.objects.get().lease_until
        wait_until(lambda: Import.objects.get().lease_until != lease_until)
        return store(*args, **kwargs)

    monkeypatch.setattr(import_runs, "RENEWAL_SECONDS", 0.05)
    monkeypatch.setattr(chat_storing, "store_chat", wait_for_renewal)
    assert import_jobs.run_due_jobs() == 1
    assert api.get(address).json()["came"] == 1


def test_a_short_import_does_not_wait_for_a_long_one_of_somebody_else(
    api: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    upload(api, build_chats(20))
    upload(api, build_chats(1))
    bob = User.objects.create_user("bob")
    other_api = APIClient()
    other_api.force_authenticate(bob)
    upload(other_api, build_chats(2))
    monkeypatch.setattr(import_jobs, "TURN_SECONDS", 0.0)
    assert import_jobs.run_due_jobs() == 3
    rows = Import.objects.order_by("finished_at")
    assert [(row.owner_id == bob.pk, row.came) for row in rows] == [
        (True, 2),
        (False, 20),
        (False, 0),
    ]


def test_a_piece_that_does_not_follow_says_where_to_go_on(api: APIClient) -> None:
    files = {"files": [{"name": "a.json", "size": 10}]}
    begun = api.post("/api/v1/imports/uploads", files).json()
    path = f"/api/v1/imports/{begun['id']}/files/{begun['files'][0]['id']}"
    piece: Any = b"12345"
    for offset, status in ((5, 409), (0, 200), (0, 409), (5, 200)):
        answer = api.generic("PUT", f"{path}?offset={offset}", piece, "application/octet-stream")
        assert answer.status_code == status, answer.json()
    import_jobs.run_due_jobs()
    result = api.get(f"/api/v1/imports/{begun['id']}").json()
    assert result["status"] == "failed"
    assert "no export" in result["detail"]


@pytest.mark.parametrize(
    "files",
    [[], [{"name": "a", "size": 0}], [{"name": "a", "size": 3_000_000_000}]],
    ids=["none", "empty", "too large"],
)
def test_an_upload_that_may_not_begin_is_refused(api: APIClient, files: Any) -> None:
    response = api.post("/api/v1/imports/uploads", {"files": files})
    assert response.status_code == 400, response.json()
    assert not Import.objects.exists()


def test_imports_of_others_do_not_exist(api: APIClient, client: Client) -> None:
    address = upload(api, build_chats(1))
    client.force_login(User.objects.create_user("other"))
    assert client.get(address).status_code == 404
    assert client.get(f"/imports/{address.rsplit('/', 1)[-1]}/").status_code == 404


def test_the_page_says_what_came_and_why_not(api: APIClient, client: Client) -> None:
    address = upload(api, build_chats(2))
    import_jobs.run_due_jobs()
    client.force_login(Import.objects.get().owner)
    page = client.get(f"/imports/{address.rsplit('/', 1)[-1]}/").content.decode()
    assert "2 came in, 0 in part, 1 not" in page
    assert "Odd one" in page
    assert "Its messages are not in the export" in page
    news = client.get(f"/imports/{address.rsplit('/', 1)[-1]}/", headers={"HX-Request": "true"})
    assert 'hx-target="#chats"' in news.content.decode()


def test_old_uploads_and_originals_are_deleted(api: APIClient) -> None:
    upload(api, build_chats(1))
    import_jobs.run_due_jobs()
    assert import_jobs.prune_imports() == 0
    Import.objects.update(finished_at="2020-01-01T00:00:00Z")
    assert import_jobs.prune_imports() == 1
    assert Session.objects.count() == 1


def test_retention_counts_from_the_import_and_not_from_the_date_of_a_chat(
    api: APIClient, settings: Any
) -> None:
    settings.CHATCORE = {**settings.CHATCORE, "SESSION_RETENTION_DAYS": 30}
    files = list_files(load_export("librechat-line"))  # of 2024
    api.generic("POST", "/api/v1/imports", _any(pack(files)), "application/zip")
    assert delete_unused_sessions() == 0
    ImportedChat.objects.update(created_at="2024-06-01T00:00:00Z")
    assert delete_unused_sessions() == 1


def test_the_command_takes_archives_and_folders(
    user: User, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "chats.zip").write_bytes(pack(list_files(load_export("claude"))))
    for name, content in list_files(load_export("jan")):
        path = tmp_path / "jan" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    call_command("import", str(tmp_path), user=user.get_username())
    assert "2 came in, 1 in part, 0 not" in capsys.readouterr().out
    assert Session.objects.filter(owner=user).count() == 3


def test_the_own_archive_comes_back_whole(api: APIClient, user: User, tmp_path: Any) -> None:
    for name in ("chatgpt-classic", "librechat", "lobehub"):
        api.generic("POST", "/api/v1/imports", _any(pack(list_files(load_export(name)))),
                    "application/zip")  # fmt: skip
    before = {session.title: _export(api, session) for session in Session.objects.all()}
    call_command("export_user", user.get_username(), str(tmp_path / "all.zip"))
    Session.objects.all().delete()
    archive = _any((tmp_path / "all.zip").read_bytes())
    result = api.generic("POST", "/api/v1/imports", archive, "application/zip").json()
    assert (result["came"], result["refusals"], result["incomplete"]) == (len(before), [], [])
    after = {session.title: _export(api, session) for session in Session.objects.all()}
    assert after == before
    call_command("verify")


def test_a_subagent_comes_back_below_its_conversation(
    api: APIClient, user: User, tmp_path: Any
) -> None:
    names = ("Away", "Task", "Agent of the task", "Agent of another one")
    away, task, *agents = [Session.objects.create(owner=user, title=name) for name in names]
    for agent, parent in zip(agents, (task, away), strict=True):
        Session.objects.filter(pk=agent.pk).update(parent=parent)
    for session in (task, *agents):
        messages = {"messages": [{"role": "user", "content": session.title}]}
        path = f"/api/v1/sessions/{session.pk}/messages/import"
        assert api.post(path, messages, format="json").status_code == 201
    exported = json.loads(_export(api, agents[0]))
    call_command("export_user", user.get_username(), str(tmp_path / "all.zip"))
    Session.objects.all().delete()
    files = ZipFile(tmp_path / "all.zip")
    kept = [(name, files.read(name)) for name in files.namelist() if str(away.pk) not in name]
    result = api.generic("POST", "/api/v1/imports", _any(pack(kept)), "application/zip").json()
    parents = {each.title: each.parent for each in Session.objects.select_related("parent")}
    assert parents["Agent of the task"] == Session.objects.get(title="Task")
    assert parents["Task"] is None
    assert parents["Agent of another one"] is None
    assert "The conversation that it belonged to is not here." in str(result)
    # Alone, a session has no place below another one.
    copy = api.post("/api/v1/sessions/import", exported, format="json").json()
    assert Session.objects.get(pk=copy["id"]).parent is None


@pytest.mark.parametrize("form", ["librechat", "openwebui"])
def test_the_form_of_another_program_comes_in_again(api: APIClient, form: str) -> None:
    files = [entry for name in ("chatgpt-classic", "claude-browser", "openwebui-tools")
             for entry in [(f"{name}.json", list_files(load_export(name))[0][1])]]  # fmt: skip
    api.generic("POST", "/api/v1/imports", _any(pack(files)), "application/zip")
    sessions = {session.title: session for session in Session.objects.all()}
    before = {title: _tell(session) for title, session in sessions.items()}
    assert len(before) == 3
    written = [
        (f"{number}.json", api.get(f"/api/v1/sessions/{session.pk}/export?format={form}").content)
        for number, session in enumerate(sessions.values())
    ]
    Session.objects.all().delete()
    result = api.generic("POST", "/api/v1/imports", _any(pack(written)), "application/zip").json()
    assert result["refused"] == 0
    assert {session.title: _tell(session) for session in Session.objects.all()} == before


def _tell(session: Session) -> list[tuple[str, str, str]]:
    """Return the words of all versions, with thoughts; calls and results aside.

    Which one was shown is not told, because LibreChat's form does not say it.
    """
    rows = session.messages.exclude(role="tool").exclude(content="").order_by("content")
    return [(row.role, row.content, row.reasoning) for row in rows]


def _export(api: APIClient, session: Session) -> str:
    """Return an exported session without the ids of its branches, which are new."""
    data = api.get(f"/api/v1/sessions/{session.pk}/export").json()
    branches: dict[str, int] = {}
    for message in data["messages"]:
        if "branch" in message:
            message["branch"] = branches.setdefault(message["branch"], len(branches))
    return json.dumps(data, sort_keys=True)


def _any(content: bytes) -> Any:
    return content


def test_a_claim_that_is_overtaken_at_once_holds_its_own_number(api: APIClient) -> None:
    upload(api, build_chats(3))
    overtaken: list[Import | None] = []

    def overtake(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        """Let the first lease end, and claim the import for another, before the first reads it."""
        if not overtaken and sql.startswith("SELECT"):
            overtaken.append(None)
            lease_until = timezone.now() - timedelta(minutes=1)
            if Import.objects.filter(status="running").update(lease_until=lease_until):
                overtaken[0] = import_jobs._claim()
            else:
                overtaken.clear()
        return execute(sql, params, many, context)

    with connection.execute_wrapper(overtake):
        first = import_jobs._claim()
    [second] = overtaken
    assert first is not None
    assert second is not None
    assert (first.attempts, second.attempts) == (1, 2)


def test_whoever_lost_an_import_deletes_none_of_its_bytes(api: APIClient) -> None:
    address = upload(api, build_chats(3))
    first = import_jobs._claim()
    assert first is not None
    Import.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    assert import_jobs._claim() is not None
    import_runs.end_import(first, Import.Status.FAILED, "The import failed. The log says why.")
    assert ImportPart.objects.exists()
    assert api.get(address).json()["status"] == "running"
    Import.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    assert import_jobs.run_due_jobs() == 1
    assert api.get(address).json()["came"] == 3
