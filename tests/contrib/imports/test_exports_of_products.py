"""Each made-up export of tests/exports comes in: its words, other versions, files and dates."""

import itertools
import json
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.contrib.imports.export_files import SAMPLE_BYTES
from chatcore.contrib.imports.models import ImportedChat
from chatcore.contrib.imports.products import READERS
from chatcore.models import Attachment, Message, Project, Session
from tests.support.exports import list_exports, list_files, load_export, pack

pytestmark = pytest.mark.django_db(transaction=True)

# Exports of which a file names a picture or document that is not in them.
INCOMPLETE = {
    "aistudio", "bigagi", "chatbox", "claude", "gemini", "librechat", "openwebui", "sillytavern",
    "typingmind", "chatgpt-broken", "chatgpt-voice", "grok-picture",
}  # fmt: skip
# Where the bytes of a file, or its text, are in the export.
FILES = {
    "chatgpt": {"lamp on the quay.png", "Lamp report.md"},
    "chatgpt-classic": {"a dark loaf"},
    "chatgpt-canvas": {"Note.md"},
    "claude-artifacts": {"Letter.md", "pasted.txt"},
    "openwebui-tools": {"pan.png"},
    "claude": {"kite.csv", "parts.md", "Bowline.md"},
    "gemini": {"tower-8f3a.png"},
    "deepseek": {"rope.txt"},
    "grok": {"as-1", "Fog card.md"},
    "openwebui": {"menu.pdf"},
    "cherrystudio": {"sizes.txt"},
    "lechat": {"cheese.png", "Cheese.md"},
    "nextchat": {"picture.png"},
    "jan": {"picture.png"},
    "openai-jsonl": {"picture.png"},
}


def send(api: APIClient, content: Any, name: str = "export.zip") -> Any:
    return api.generic("POST", f"/api/v1/imports?name={name}", content, "application/zip")


def tell(session: Session) -> list[tuple[str, str]]:
    """Return who said what, as a reader of the page sees it."""
    messages = session.messages.exclude_superseded().exclude(role="tool").order_by("seq")
    runs = itertools.groupby(messages, key=lambda message: message.role)
    told = [(role, " ".join(message.content for message in run)) for role, run in runs]
    return [(role, re.sub(r"\[([^\]]*)\]\([^)]*\)|\*", r"\1", words)) for role, words in told]


def find_beginning(words: str) -> str:
    """Return how words begin, without what the author of the miniature says of them."""
    return re.split(r"[(\[…/]", " ".join(words.split()))[0][:12].strip()


def lengthen(content: bytes) -> bytes:
    """Return an object in JSON as one that is longer than what tells products apart."""
    return content + b" " * SAMPLE_BYTES if content.lstrip()[:1] == b"{" else content


@pytest.mark.parametrize(
    "is_long", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["short", "long"]
)
@pytest.mark.parametrize("name", list_exports())
def test_an_export_comes_in(api: APIClient, name: str, is_long: bool) -> None:
    export = load_export(name)
    sent_files = list_files(export)
    if is_long:
        sent_files = [(file_name, lengthen(content)) for file_name, content in sent_files]
    response = send(api, pack(sent_files))
    assert response.status_code == 201, response.json()
    result = response.json()
    sessions = [Session.objects.get(pk=chat["id"]) for chat in result["sessions"]]
    for expected in export["shown"]:
        lines = [(role, find_beginning(words)) for role, words in expected["messages"]]
        assert any(
            [role for role, _ in told] == [role for role, _ in lines]
            and all(
                beginning in " ".join(words.split())
                for (_, words), (_, beginning) in zip(told, lines, strict=True)
            )
            for told in map(tell, sessions)
        ), (expected, [tell(session) for session in sessions])
    others = " ".join(Message.objects.exclude(branch=None).values_list("content", flat=True))
    for words in export["other"]:
        assert find_beginning(words) in others
    files = {file.name for session in sessions for file in session.attachments.all()}
    assert files == FILES.get(name, set())
    projects = {
        project.name: {file.name for file in project.files.all()}
        for project in Project.objects.all()
    }
    assert projects == {title: set(names) for title, names in export.get("projects", {}).items()}
    words = " ".join(Message.objects.values_list("content", flat=True))
    words += " ".join(Attachment.objects.values_list("text", flat=True))
    assert all(text in words for text in export.get("texts", []))
    assert [chat["title"] for chat in result["refusals"] if chat["title"]] == export.get(
        "refused", []
    )
    assert bool(result["partly"]) == (name in INCOMPLETE), result
    again = send(api, pack(sent_files)).json()
    assert (again["came"], again["partly"], again["sessions"]) == (0, 0, [])


ROW = re.compile(r"^\| (?P<name>[^|]+) \|(?P<cells>(?:[^|]+\|){8})$", re.MULTILINE)


def describe_product(name: str) -> list[str]:
    """Return the cells of a product in docs/import.md, by what came of all of its exports."""
    chats = ImportedChat.objects.filter(product=name)
    sessions = Session.objects.filter(imported_as__in=chats)
    messages = Message.objects.filter(session__in=sessions)
    hour_ago = timezone.now() - timedelta(hours=1)
    facts = [
        messages.exclude(branch=None),
        messages.exclude(reasoning=""),
        messages.filter(role="tool"),
        Attachment.objects.filter(session__in=sessions),
        sessions.exclude(system_prompt=""),
        messages.exclude(model=""),
        sessions.filter(updated_at__lt=hour_ago),
    ]
    return ["yes" if rows.exists() else "–" for rows in facts]


@pytest.mark.slow
def test_the_table_of_what_is_kept_holds_cell_by_cell(api: APIClient) -> None:
    for name in list_exports():
        send(api, pack(list_files(load_export(name))))
    names = {reader.name: reader.key for reader in READERS if reader.key != "chatcore"}
    text = (Path(__file__).parents[3] / "docs" / "import.md").read_text()
    written = {
        match["name"].strip(): [cell.strip() for cell in match["cells"].split("|")[1:-1]]
        for match in ROW.finditer(text)
        if match["name"].strip() in names
    }
    assert written == {name: describe_product(key) for name, key in names.items()}


def test_dates_and_order_are_as_they_were(api: APIClient) -> None:
    send(api, pack(list_files(load_export("chatgpt"))))
    sessions = list(Session.objects.order_by("-updated_at"))
    assert [session.title for session in sessions] == ["Tide table", "Harbour lamp", "Crew"]
    assert [session.updated_at.isoformat()[:16] for session in sessions] == [
        "2026-06-21T01:24", "2026-06-21T00:15", "2026-06-20T10:01"
    ]  # fmt: skip
    assert sessions[0].archived
    answer = sessions[1].messages.exclude_superseded().get(role="assistant")
    assert answer.created_at.isoformat()[:19] == "2026-06-21T00:00:04"
    assert (answer.model, answer.reasoning) == ("gpt-5-thinking", "A red lens.")


def test_archives_in_an_archive_and_junk_beside(api: APIClient) -> None:
    parts: dict[str, list[tuple[str, bytes]]] = {}
    for path, content in list_files(load_export("chatgpt")):
        archive, _, name = path.partition("/")
        parts.setdefault(archive, []).append((name, content))
    files = [(name, pack(content)) for name, content in parts.items()]
    junk = [("__MACOSX/._conversations.json", b"\0\5\x16\7"), ("shared_conversations.json", b"[]")]
    result = send(api, pack([*junk, *files])).json()
    assert (result["came"], result["refused"]) == (3, 0)
    names = [file.name for s in Session.objects.all() for file in s.attachments.all()]
    assert sorted(names) == ["Lamp report.md", "lamp on the quay.png"]


def test_marks_of_citations_become_links(api: APIClient) -> None:
    mark = "\ue200cite\ue202turn0search3\ue202turn0search8\ue201"
    entity = '\ue200entity\ue202["bird","grey heron"]\ue201'
    groups = [
        {"entries": [
            {"url": f"https://birds.example/{number}", "title": f"Birds {number}",
             "ref_id": {"turn_index": 0, "ref_type": "search", "ref_index": number}}
            for number in (3, 8)
        ]}
    ]  # fmt: skip
    message = {
        "author": {"role": "assistant"},
        "content": {"content_type": "text", "parts": [f"The {entity} fishes.{mark}"]},
        "metadata": {"search_result_groups": groups},
    }
    chat = {"id": "1", "title": "x", "mapping": {"a": {"id": "a", "message": message}}}
    [session] = api.post("/api/v1/imports", [chat]).json()["sessions"]
    assert Message.objects.get(session=session["id"]).content == (
        "The grey heron fishes."
        " ([Birds 3](https://birds.example/3), [Birds 8](https://birds.example/8))"
    )


def test_what_was_said_in_a_voice_chat_is_kept(api: APIClient) -> None:
    parts: list[Any] = [
        {"content_type": "audio_transcription", "text": "Hello?", "direction": "in"},
        {"content_type": "audio_asset_pointer", "asset_pointer": "sediment://file_1"},
    ]
    message = {"author": {"role": "user"}, "content": {"content_type": "multimodal_text",
               "parts": parts}}  # fmt: skip
    chat = {"id": "1", "title": "x", "mapping": {"a": {"id": "a", "message": message}}}
    result = api.post("/api/v1/imports", [chat]).json()
    assert result["came"] == 1
    assert Message.objects.get().content == "Hello?"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"[" * 2_000_000, "cannot be read"),
        (pack([("conversations.json", b"[" + b"0," * 20_000_000 + b"0]")]), "unpacks to more"),
        ("ÿþ".encode("utf-16-le"), "no export"),
        (b'{"conversationId": "1", "messages": ', "cannot be read"),
    ],
    ids=["deep", "bomb", "nothing", "cut off"],
)
def test_what_is_no_export_is_refused_in_words(api: APIClient, content: bytes, words: str) -> None:
    response = send(api, content)
    assert response.status_code == 400, response.json()
    assert words in response.json()["detail"]
    assert not Session.all_objects.exists()


def test_a_text_in_utf_16_and_one_with_a_mark_are_read(api: APIClient) -> None:
    chat = {"id": "1", "title": "é", "mapping": {"a": {"id": "a", "message": {
        "author": {"role": "user"}, "content": {"parts": ["Où?"]}}}}}  # fmt: skip
    for number, encoding in enumerate(("utf-16", "utf-8-sig")):
        content = json.dumps([chat | {"id": str(number)}], ensure_ascii=False).encode(encoding)
        assert send(api, content).json()["came"] == 1
    assert set(Message.objects.values_list("content", flat=True)) == {"Où?"}


def test_a_list_that_ends_early_gives_what_it_has(api: APIClient) -> None:
    [(_, content)] = list_files(load_export("openwebui"))
    result = send(api, content[:-30]).json()
    assert (result["partly"], result["refused"]) == (1, 1)
    assert "ends in the middle" in result["refusals"][0]["detail"]
