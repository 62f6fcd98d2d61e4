"""A provider's key, and what looks like one, appears in no error, event, log or row."""

import json
import logging

import pytest
from django.db import connection
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.providers.error_mapping import _format_message
from models_registry.models import Provider
from tests.support.compaction_sessions import fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

RANDOM = "Zq7Xw2Lm9Tb4Rk1Vn8Hs3Jd6"
HEX = "3f9a1c7e5b2d8f604a1b9c3d7e5f2a80"
KEYS = (
    f"sk-{RANDOM}",
    f"sk-proj-{RANDOM}_{RANDOM}",
    f"sk-ant-api03-{RANDOM}-{RANDOM}AA",
    f"sk-or-v1-{HEX}{HEX}",
    f"sk_live_{RANDOM}",
    f"pk_test_{RANDOM}",
    f"rk_live_{RANDOM}",
    f"gsk_{RANDOM}",
    f"xai-{RANDOM}",
    f"AIzaSy{RANDOM}abcdefghi",
    f"hf_{RANDOM}",
    f"r8_{RANDOM}",
    f"fw_{RANDOM}",
    f"csk-{RANDOM}",
    f"nvapi-{RANDOM}",
    f"pplx-{HEX}",
    f"tgp_v1_{RANDOM}",
    f"ghp_{RANDOM}",
    f"gho_{RANDOM}",
    f"ghs_{RANDOM}",
    f"github_pat_{RANDOM}_{RANDOM}",
    f"glpat-{RANDOM}",
    f"xoxb-123456789012-{RANDOM}",
    f"xoxp-123456789012-{RANDOM}",
    f"whsec_{RANDOM}",
    f"dop_v1_{HEX}",
    "AKIAQ7XW2LM9TB4RK1VN",
    "ASIAQ7XW2LM9TB4RK1VN",
    f"ya29.{RANDOM}",
    f"SG.{RANDOM}.{RANDOM}",
    f"AQ.{RANDOM}",
    f"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.{RANDOM}",
    HEX,
    HEX.upper(),
    f"{RANDOM}abcdefgh12",
    f"{RANDOM}_{RANDOM}",
    f"Bearer {RANDOM}",
    f"Basic {RANDOM}==",
    f"x-api-key: {RANDOM}",
    f"https://x.example/v1?key={RANDOM}",
)
SENTENCES = ("Incorrect API key provided: {}.", "The key {} is not valid", 'Unknown token "{}"')


def test_there_are_forty_shapes() -> None:
    assert len(set(KEYS)) == 40


@pytest.mark.parametrize("key", KEYS)
def test_what_looks_like_a_key_is_left_out_of_a_providers_words(key: str) -> None:
    secret = key.split()[-1].rpartition("key=")[2].rstrip("=")
    for sentence in SENTENCES:
        shown = _format_message(sentence.format(key), "another key")
        assert secret not in shown
        assert "[key]" in shown


@pytest.mark.parametrize(
    "words",
    [
        "The request 7c9e6679-7425-40de-944b-e07fc1f90ae7 was refused.",
        "The model claude-3-5-sonnet-20241022 does not exist.",
        "Rate limit reached for gpt-5-mini in organization org-x on tokens per min: 30000.",
        "risk-taking and desk-bound task-oriented words stay",
        "max_completion_tokens must be greater than thinking.budget_tokens",
    ],
)
def test_what_a_provider_says_otherwise_stays(words: str) -> None:
    assert _format_message(words, "another key") == words


@pytest.mark.parametrize("key", ["short", 'with "quotes" & signs', "spaces in it", "plain+key/1=="])
def test_the_providers_own_key_is_left_out_in_every_spelling(key: str) -> None:
    from html import escape
    from urllib.parse import quote

    for form in (key, quote(key, safe=""), json.dumps(key)[1:-1], escape(key)):
        assert form not in _format_message(f"The key is {form} and wrong.", key)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("key", [KEYS[0], HEX, "my-own+key"])
def test_no_row_answer_or_log_has_the_key_that_a_provider_repeats(
    api: APIClient,
    session: Session,
    scripted: ScriptedModel,
    caplog: pytest.LogCaptureFixture,
    key: str,
) -> None:
    provider = Provider.objects.get()
    provider.api_key = key
    provider.save()
    error = {"error": {"message": f"Incorrect API key: {key}", "type": "authentication_error"}}
    scripted.default = Reply(status=401, body=json.dumps(error).encode())
    fill_session(session)
    with caplog.at_level(logging.INFO):
        answers = [
            api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"}),
            api.post(f"/api/v1/sessions/{session.pk}/compact", {"wait": True}),
            api.get(f"/api/v1/sessions/{session.pk}/compactions"),
            api.get(f"/api/v1/sessions/{session.pk}/messages"),
            api.post(
                "/v1/chat/completions",
                {"model": "scripted/test-model", "messages": [{"role": "user", "content": "Hi"}]},
            ),
        ]
    assert any(f"Bearer {key}" == call.headers.get("authorization") for call in scripted.requests)
    assert key not in "".join(answer.content.decode() for answer in answers) + caplog.text
    with connection.cursor() as cursor:
        for table in ("chatcore_sessionevent", "chatcore_turn", "compaction_compactionrun"):
            cursor.execute(f"SELECT * FROM {table}")
            rows = cursor.fetchall()
            assert rows
            assert key not in str(rows)
