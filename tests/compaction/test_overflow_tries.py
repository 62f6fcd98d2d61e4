"""A refusal for length makes room under every policy, with a known window and without one."""

import itertools
import json
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User

from chatcore.models import Session
from compaction.models import ModelRatio
from models_registry.models import AiModel, Provider
from tests.conftest import Live
from tests.support.compaction_sessions import (
    fill_session,
    list_chat_calls,
    run_queued_compactions,
    say,
    summarize_or_chat,
)
from tests.support.context_usage import load_usage
from tests.support.openai_client import MODEL, count_tokens, create_key
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow

pytestmark = pytest.mark.django_db(transaction=True)

POLICIES = ["oneclaw", "chatcore", "neurolink", "lota", "wolffish", "baseagent"]
PROTOCOLS, WINDOWS = ("openai", "anthropic"), (None, 8192)
# Neighbours differ in both.
EACH_POLICY = [
    (policy, PROTOCOLS[place % 2], WINDOWS[place // 2 % 2]) for place, policy in enumerate(POLICIES)
]
TAKES = 3_000


def refuse(status: int, message: str, **fields: Any) -> Callable[[int], Reply]:
    def build(tokens: int) -> Reply:
        text = message.format(tokens=tokens, takes=TAKES)
        return Reply(
            status=status, body=json.dumps({"error": {"message": text, **fields}}).encode()
        )

    return build


REFUSALS: dict[str, Callable[[int], Reply]] = {
    "its number": refuse(400, "This model's maximum context length is {takes} tokens. However,"
                              " your messages resulted in {tokens} tokens."),
    "no number": refuse(400, "Your input exceeds the context window of this model."),
    "a lie": refuse(400, "This model's maximum context length is 8192 tokens."),
    "another language": refuse(400, "Der Text ist zu lang."),
    "no word": lambda tokens: Reply(text="", finish="length", usage=(tokens, 0)),
    "nothing": lambda tokens: Reply(text="", usage=False),
    "an event": lambda tokens: Reply(
        body=b'data: {"error": {"message": "Input does not fit in context length"}}\n\n',
        headers={"Content-Type": "text/event-stream"},
    ),
}  # fmt: skip


def limit(scripted: ScriptedModel, build_refusal: Callable[[int], Reply]) -> None:
    """Let the provider refuse what is longer than it takes."""
    reply = summarize_or_chat()

    def answer(request: dict[str, Any]) -> Reply:
        tokens = count_tokens(request)
        return build_refusal(tokens) if tokens > TAKES else reply(request)

    scripted.default = answer


def speak(protocol: str, scripted: ScriptedModel) -> None:
    if protocol == "anthropic":
        Provider.objects.update(protocol=protocol, base_url=scripted.anthropic_base_url)


@pytest.mark.parametrize("refusal", mark_others_slow(REFUSALS, first=3))
@pytest.mark.parametrize("window", [None, 8192])
def test_the_answer_comes_in_the_same_turn(
    refusal: str, window: int | None, session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=window)
    session.refresh_from_db()
    fill_session(session, messages=8)
    limit(scripted, REFUSALS[refusal])
    for question in ("Where do we stand?", "And now?", "And then?"):
        before = len(list_chat_calls(scripted))
        turn = say(session, question)
        assert turn.status == "completed", turn.error
        assert len(list_chat_calls(scripted)) - before <= 4
    if window is None:
        learned = ModelRatio.objects.get().window
        assert learned
        assert learned < 4_500
        usage = load_usage(session.pk)
        assert (usage["context_window"], usage["window_source"]) == (learned, "learned")


@pytest.mark.parametrize(
    ("policy", "protocol", "window"),
    [
        *EACH_POLICY,
        *(
            pytest.param(*others, marks=pytest.mark.slow)
            for others in itertools.product(POLICIES, PROTOCOLS, WINDOWS)
            if others not in EACH_POLICY
        ),
    ],
)
def test_every_policy_makes_room(
    policy: str,
    protocol: str,
    window: int | None,
    session: Session,
    model: AiModel,
    scripted: ScriptedModel,
) -> None:
    AiModel.objects.update(context_window_size=window)
    speak(protocol, scripted)
    Session.objects.update(policy=policy)
    session.refresh_from_db()
    fill_session(session, messages=8)
    limit(scripted, REFUSALS["its number"])
    for question in ("Where do we stand?", "And now?"):
        turn = say(session, question)
        assert turn.status == "completed", turn.error


def test_a_learned_window_counts_as_known(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=None)
    session.refresh_from_db()
    fill_session(session, messages=8)
    limit(scripted, REFUSALS["its number"])
    assert say(session).status == "completed"
    assert ModelRatio.objects.get().window == TAKES
    for number in range(12):
        before = len(list_chat_calls(scripted))
        assert (
            say(session, f"Tell me more of number {number}. " + "word " * 200).status == "completed"
        )
        run_queued_compactions()
        assert len(list_chat_calls(scripted)) - before == 1  # nothing is refused any more


@pytest.mark.slow
def test_a_failed_smaller_request_teaches_nothing(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=None)
    session.refresh_from_db()
    fill_session(session, messages=1_000)
    scripted.default = summarize_or_chat(chat=REFUSALS["no number"](9_000))
    turn = say(session)
    assert turn.status == "failed"
    assert turn.error
    assert turn.error["type"] == "context_overflow"
    assert "were tried" in turn.error["detail"]
    assert len(list_chat_calls(scripted)) == 4
    assert not ModelRatio.objects.filter(window__isnull=False).exists()


def test_an_operators_entry_wins_and_a_longer_answer_forgets(
    session: Session, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=None)
    session.refresh_from_db()
    fill_session(session, messages=8)
    limit(scripted, REFUSALS["its number"])
    assert say(session).status == "completed"
    AiModel.objects.update(context_window_size=16_384)
    assert load_usage(session.pk)["context_window"] == 16_384
    AiModel.objects.update(context_window_size=None)
    assert load_usage(session.pk)["context_window"] == TAKES
    scripted.default = Reply(text="Sure.", usage=(6_000, 5))
    assert say(session).status == "completed"
    assert load_usage(session.pk)["context_window"] is None


@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'messages[3].tool_calls[0].id': string too long. Expected at most 40.",
        "stop: exceeds max length 64",
        "name exceeds max length 64",
        "Invalid 'tools': array too long. Expected an array with maximum length 128.",
        "max_tokens is too large: 100000. This model supports at most 16384 completion tokens.",
        "Range of max_tokens should be [1, 8192]",
        "messages.5.content.1.image.source.base64: image exceeds 5 MB maximum",
        "ValidationException: the security token included in the request is invalid",
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "too many tokens, please wait before trying again",
    ],
)
def test_what_only_looks_like_it_never_makes_room(
    message: str, session: Session, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=12)
    scripted.default = Reply(status=400, text=message)
    turn = say(session)
    assert turn.error
    assert turn.error["type"] in ("provider_rejected", "provider_rate_limited")
    assert len(scripted.requests) == 1


@pytest.mark.parametrize("refusal", mark_others_slow(REFUSALS, first=3))
@pytest.mark.parametrize("path", ["chat/completions", "messages"])
def test_without_a_session_too(
    refusal: str, path: str, live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    AiModel.objects.update(context_window_size=None)
    limit(scripted, REFUSALS[refusal])
    history = [
        {"role": "assistant" if index % 2 else "user", "content": f"Part {index}. " + "word " * 400}
        for index in range(9)
    ]
    response = httpx2.post(
        f"{live.url}/v1/{path}",
        json={"model": MODEL, "max_tokens": 100, "messages": history},
        headers={"Authorization": f"Bearer {create_key(user)}"},
        timeout=60,
    )
    assert response.status_code == 200, response.text
    assert len(scripted.requests) <= 4
    assert ModelRatio.objects.get().window
