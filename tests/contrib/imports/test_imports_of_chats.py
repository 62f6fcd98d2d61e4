"""`POST /imports`: the chats that people export from ChatGPT and Claude."""

import io
import json
import zipfile
from typing import Any

import pytest
from rest_framework.test import APIClient

from chatcore.models import Message, Session

pytestmark = pytest.mark.django_db(transaction=True)


def build_node(
    name: str, parent: str | None, role: str, *parts: Any, hidden: bool = False
) -> dict[str, Any]:
    message = {
        "author": {"role": role},
        "create_time": 1_750_000_000.5,
        "content": {"content_type": "text", "parts": list(parts)},
        "metadata": {"is_visually_hidden_from_conversation": hidden},
    }
    return {"id": name, "parent": parent, "children": [], "message": message}


def build_tree() -> dict[str, Any]:
    """A chat of ChatGPT whose first answer was written anew: the branch of `d` is current."""
    nodes = [
        {"id": "root", "parent": None, "children": ["a"], "message": None},
        build_node("a", "root", "system", "Be kind.", hidden=True),
        build_node("b", "a", "user", "What is a heron?", {"asset_pointer": "file-service://1"}),
        build_node("c", "b", "assistant", "A fish."),
        build_node("d", "b", "assistant", "A bird."),
        build_node("e", "d", "tool", "{}"),
    ]
    mapping = {node["id"]: node for node in nodes}
    return {"title": "Herons", "create_time": 1.0, "mapping": mapping, "current_node": "e"}


CLAUDE_CHAT: dict[str, Any] = {
    "uuid": "1",
    "name": "Lakes",
    "created_at": "2026-01-02T03:04:05.678Z",
    "chat_messages": [
        {
            "sender": "human",
            "text": "",
            "content": [{"type": "text", "text": "How deep is it?"}],
            "created_at": "2026-01-02T03:04:06Z",
            "attachments": [{"file_name": "lake.txt", "extracted_content": "Depth: 12 m"}],
        },
        {
            "sender": "assistant",
            "text": "Twelve meters.",
            "content": [{"type": "thinking", "thinking": "Hm."}],
            "created_at": "2026-01-02T03:04:09Z",
        },
    ],
}


def import_chats(api: APIClient, data: Any, status: int = 201) -> Any:
    response = api.post("/api/v1/imports", data)
    assert response.status_code == status, response.json()
    return response.json()


def send_archive(api: APIClient, content: Any) -> Any:
    return api.generic("POST", "/api/v1/imports", content, "application/zip")


def list_words(session_id: Any) -> list[tuple[str, str]]:
    messages = Message.objects.filter(session=session_id, branch=None).order_by("seq")
    return list(messages.values_list("role", "content"))


def test_a_chat_of_chatgpt_comes_with_the_branch_that_was_shown(api: APIClient) -> None:
    result = import_chats(api, [build_tree()])
    assert result["refusals"] == []
    [chat] = result["sessions"]
    assert (chat["title"], chat["message_count"]) == ("Herons", 2)
    assert list_words(chat["id"]) == [("user", "What is a heron?"), ("assistant", "A bird.")]
    [other] = Message.objects.filter(session=chat["id"]).exclude(branch=None)
    assert (other.content, other.replacements.get().content) == ("A fish.", "A bird.")


def test_a_chat_of_claude_comes_with_the_texts_of_its_files(api: APIClient) -> None:
    [chat] = import_chats(api, [CLAUDE_CHAT])["sessions"]
    assert chat["title"] == "Lakes"
    assert list_words(chat["id"]) == [
        ("user", "How deep is it?"),
        ("assistant", "Twelve meters."),
    ]
    first, second = Message.objects.filter(session=chat["id"]).order_by("seq")
    [file] = first.attachments.all()
    assert (file.name, file.text) == ("lake.txt", "Depth: 12 m")
    assert second.reasoning == "Hm."
    assert first.created_at.isoformat() == "2026-01-02T03:04:06+00:00"


def test_a_whole_zip_file_is_taken(api: APIClient) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("export/conversations.json", json.dumps([build_tree(), build_tree()]))
        archive.writestr("export/user.json", "{}")
    response = send_archive(api, file.getvalue())
    assert response.status_code == 201, response.json()
    assert len(response.json()["sessions"]) == 2


def test_a_message_over_the_limit_is_split(api: APIClient) -> None:
    long_chat = build_tree() | {"title": "Long"}
    words = "Herons are birds.\n" * 20_000
    long_chat["mapping"]["d"]["message"]["content"]["parts"] = [words]
    result = import_chats(api, [long_chat])
    assert (result["came"], result["partly"], result["refusals"]) == (0, 1, [])
    answers = [text for role, text in list_words(result["sessions"][0]["id"])[1:]]
    assert len(answers) == 2
    assert "".join(answers) == words.strip() + "\n"


def test_an_odd_chat_is_named_and_the_others_come(api: APIClient) -> None:
    odd = {"title": "Shell", "create_time": 1.0}
    nobody = build_tree() | {"id": "2", "title": "Nobody"}
    nobody["mapping"]["d"]["message"]["author"] = None
    result = import_chats(api, [odd, nobody, build_tree() | {"id": "3"}])
    assert [chat["title"] for chat in result["sessions"]] == ["Nobody", "Herons"]
    [refusal] = result["refusals"]
    assert refusal["title"] == "Shell"
    assert "not in the export" in refusal["detail"]


def test_a_chat_without_words_is_named(api: APIClient) -> None:
    empty: dict[str, Any] = {"title": "Empty", "mapping": {}, "current_node": None}
    result = import_chats(api, [empty])
    assert result["refusals"] == [{"title": "Empty", "detail": "Nothing was said in it."}]


def test_the_same_export_again_adds_only_what_is_new(api: APIClient) -> None:
    short = build_tree() | {"id": "7"}
    del short["mapping"]["d"], short["mapping"]["e"], short["mapping"]["c"]
    [first] = import_chats(api, [short])["sessions"]
    again = import_chats(api, [short])
    assert (again["known"], again["sessions"]) == (1, [])
    grown = import_chats(api, [build_tree() | {"id": "7"}])
    assert [chat["id"] for chat in grown["sessions"]] == [first["id"]]
    assert list_words(first["id"])[-1] == ("assistant", "A bird.")
    assert Session.objects.count() == 1


def test_parents_in_a_circle_end(api: APIClient) -> None:
    chat = build_tree()
    chat["mapping"]["a"]["parent"] = "d"
    assert len(import_chats(api, [chat])["sessions"]) == 1


@pytest.mark.parametrize(
    "data",
    [
        {},
        [],
        [5],
        [{"title": "x"}],
        [{"mapping": 5}],
        [{"mapping": {"a": 5}, "current_node": "a"}],
        [{"chat_messages": [{}]}],
        [{"chat_messages": [{"sender": "human", "content": [5]}]}],
        [{"mapping": {"a": {"message": {"author": []}}}, "current_node": "a"}],
    ],
)
def test_something_else_is_refused_in_words_and_nothing_is_stored(
    api: APIClient, data: Any
) -> None:
    problem = import_chats(api, data, 400)
    assert problem["detail"]
    assert not Session.all_objects.exists()


@pytest.mark.parametrize("content", [b"", b"PK", b"PK\x03\x04" + b"\0" * 40, b"[]"])
def test_a_broken_archive_is_refused_in_words(api: APIClient, content: bytes) -> None:
    response = send_archive(api, content)
    assert response.status_code == 400, response.content


def build_archive(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", content)
    return file.getvalue()


def damage(archive: bytes) -> bytes:
    """Change the packed bytes behind the header of the entry, and nothing else."""
    start = archive.index(b"conversations.json") + len(b"conversations.json")
    return archive[:start] + b"\xff" * 8 + archive[start + 8 :]


def name_compression(archive: bytes, method: int) -> bytes:
    """Say in both headers of the entry that it is packed by another method."""
    number = method.to_bytes(2, "little")
    central = archive.index(b"PK\x01\x02")
    return archive[:8] + number + archive[10 : central + 10] + number + archive[central + 12 :]


@pytest.mark.parametrize(
    "archive",
    [
        damage(build_archive(json.dumps([CLAUDE_CHAT]).encode())),
        name_compression(build_archive(b"[]"), 99),
        build_archive(b"[" * 200_000),
        build_archive(b"\xff\xfe[]"),
        build_archive(b"no JSON"),
    ],
    ids=["damaged", "unknown compression", "too deep", "no text", "no JSON"],
)
def test_an_archive_that_opens_and_cannot_be_read_is_refused_in_words(
    api: APIClient, archive: bytes
) -> None:
    response = send_archive(api, archive)
    assert response.status_code == 400, response.content
    assert "cannot be read" in response.json()["detail"]


def test_an_archive_without_chats_is_refused_in_words(api: APIClient) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("readme.txt", "Hello")
    response = send_archive(api, file.getvalue())
    assert response.status_code == 400
    assert "conversations.json" in response.json()["detail"]
