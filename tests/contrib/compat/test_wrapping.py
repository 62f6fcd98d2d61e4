"""What a program puts around its user's words is in no title, and folded on the page."""

import re
from typing import Any

import pytest
from anthropic import Anthropic
from django.contrib.auth.models import User
from django.test import Client
from openai import OpenAI

from chatcore.models import Message, Session
from chatcore.sessions.wrapping import find_words, split_text
from models_registry.models import AiModel
from tests.support.anthropic_client import MODEL, gpt
from tests.support.openai_client import client
from tests.support.recorded_programs import load_recording, send_recording
from tests.support.scripted_model import ScriptedModel

__all__ = ["client", "gpt"]

pytestmark = pytest.mark.django_db(transaction=True)
WORDS = "Fix the heron counter, please."
REMINDER = "<system-reminder>\nAs you answer, you can use this context:\n# date\n</system-reminder>"
# Aider 0.86.2, shortened.
AIDER: list[Any] = [
    {"role": "user", "content": "Change the greeting to be more casual"},
    {"role": "assistant", "content": "Ok, I will:\n\n1. Switch the greeting text."},
    {
        "role": "user",
        "content": "I switched to a new code base. Please don't consider the above files or try to"
        " edit them any longer.",
    },
    {"role": "assistant", "content": "Ok."},
    {
        "role": "user",
        "content": f"{WORDS}\n\nTo suggest changes to a file you MUST return the entire content of"
        " the updated file.\n\nReply in English.",
    },
]


@pytest.fixture(autouse=True)
def widen_window(model: AiModel) -> None:
    AiModel.objects.filter(pk=model.pk).update(context_window_size=65_536)


def read_page(user: User, session: Session) -> str:
    browser = Client()
    browser.force_login(user)
    return browser.get(f"/c/{session.pk}/").content.decode()


def find_folded(page: str) -> list[str]:
    folds = re.findall(r'<details class="fold wrapping">(.*?)</details>', page, re.DOTALL)
    return [text for fold in folds for text in re.findall(r"data-source>(.*?)</pre>", fold, re.S)]


def find_shown(page: str) -> list[str]:
    return re.findall(r'<div class="words"[^>]*data-source[^>]*>([^<]*)</div>', page)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ('"Fix the counter, \\"until all\\" is well."', 'Fix the counter, "until all" is well.'),
        ('"One" and "two" are the same.', '"One" and "two" are the same.'),
        ('"', '"'),
    ],
)
def test_marks_around_a_whole_question_are_not_in_its_title(
    client: OpenAI, text: str, title: str
) -> None:
    client.chat.completions.create(
        model=MODEL,
        messages=[{"role": "user", "content": text}],
        extra_headers={"X-Session-Id": "mine"},
    )
    assert Session.objects.get().title == title


def test_a_session_of_claude_code(gpt: Anthropic, user: User, scripted: ScriptedModel) -> None:
    parts: Any = [{"type": "text", "text": REMINDER}, {"type": "text", "text": WORDS}]
    messages: Any = [
        {"role": "user", "content": parts},
        {"role": "system", "content": "Available skills: review."},
    ]
    gpt.messages.create(
        model=MODEL, max_tokens=100, messages=messages, extra_headers={"X-Session-Id": "named"}
    )
    session = Session.objects.get()
    assert session.title == WORDS
    question = session.messages.get(seq=1)
    assert question.content.startswith(REMINDER)
    page = read_page(user, session)
    assert find_shown(page) == [WORDS]
    assert len(find_folded(page)) == 2
    assert scripted.requests[-1].json["messages"][0]["content"] == question.content


def test_a_session_of_codex(client: OpenAI, user: User) -> None:
    recording = load_recording("codex-0.171.0-gpt-5.5")
    answer = send_recording(client, recording, model="scripted/test-model", store=True)
    assert answer.status_code == 200, answer.text
    session = Session.objects.get()
    assert session.title == "Do it"
    page = read_page(user, session)
    assert find_shown(page) == ["Do it"]
    [folded] = find_folded(page)
    assert folded.startswith("&lt;environment_context&gt;")
    assert page.count("data-wrapping") == 1


def test_a_session_of_aider(client: OpenAI, user: User) -> None:
    client.chat.completions.create(
        model="scripted/test-model", messages=AIDER, extra_headers={"X-Session-Id": "named"}
    )
    session = Session.objects.get()
    assert session.title == WORDS
    page = read_page(user, session)
    assert [text.strip() for text in find_shown(page)] == [WORDS]
    assert page.count('<details class="fold wrapping">') == 5


def test_a_deleted_question_gives_its_title_back(client: OpenAI) -> None:
    recording = load_recording("codex-0.171.0-gpt-5.5")
    send_recording(client, recording, model="scripted/test-model", store=True)
    session = Session.objects.get()
    client.responses.create(
        model="scripted/test-model",
        input="And the egrets?",
        extra_headers={"X-Session-Id": str(session.external_id)},
    )
    question = session.messages.get(content="Do it")
    user_client = Client()
    user_client.force_login(session.owner)
    assert user_client.delete(f"/api/v1/messages/{question.pk}").status_code == 204
    session.refresh_from_db()
    assert session.title == "And the egrets?"


def test_what_a_person_pastes_into_the_page_is_shown(session: Session, user: User) -> None:
    text = f"{WORDS}\n<bird_list>\nheron\n</bird_list>"
    Message.objects.create(session=session, seq=1, role="user", content=text)
    page = read_page(user, session)
    assert 'class="fold wrapping"' not in page
    assert "heron\n&lt;/bird_list&gt;" in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WORDS, WORDS),
        (f"<task>\n{WORDS}\n</task>\n<environment_details>\nx\n</environment_details>", WORDS),
        (f"# AGENTS.md instructions for /a\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n{WORDS}", WORDS),
        (f"<a-b>x</a-b>\n<c_d>y</c_d>\n\n{WORDS}\n<e-f>z</e-f>\n<e-f>z</e-f>", WORDS),
        ("<a-b>x</a-b> is what?", "<a-b>x</a-b> is what?"),
        ("<a-b>x", "<a-b>x"),
        ("Why </a-b>", "Why </a-b>"),
        ("<p>HTML</p>\nWhy?", "<p>HTML</p>\nWhy?"),
        ("<a-b>x</a-b>", ""),
        ("", ""),
    ],
)
def test_texts(text: str, words: str) -> None:
    assert find_words(text) == words
    assert "".join(piece.text for piece in split_text(text)) == text


@pytest.mark.parametrize("block", ["<a-b></a-b>\n", "</a-b>", "<a-b>", "<task>", "<task></task>"])
def test_hostile_texts_end(block: str) -> None:
    text = block * (250_000 // len(block))
    assert "".join(piece.text for piece in split_text(text)) == text
