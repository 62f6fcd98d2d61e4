"""The embedded model with real weights: it answers the real SDK and sums up a chat.

Whole talks with it are in tests/web/test_journey.py and tests/faults/test_journey.py.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from django.conf import settings
from pytest_django import DjangoDbBlocker
from rest_framework.test import APIClient

from chatcore.context.live_messages import ActiveRevision
from chatcore.contrib.local_model import register, weights
from chatcore.contrib.local_model.server import find_free_port
from chatcore.models import Session
from chatcore.tools.registry import list_session_tools
from models_registry.models import AiModel, Provider
from tests.support.database import build_database_url
from tests.support.served_product import STORY
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.model,
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("hide_the_browsers_loop"),
]
WINDOW = 2048
MAX_RUNS = 3  # the smallest model may write no usable summary
API_KEY = "a key of this test"


class Embedded:
    """The embedded model's own process, over this test's database."""

    def __init__(self, output: Path) -> None:
        self.port = find_free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.output = output
        with output.open("w") as file:
            command = [sys.executable, "-m", "chatcore.contrib.local_model.server"]
            self.process = subprocess.Popen(
                command, env=self.environment(), stdout=file, stderr=subprocess.STDOUT
            )

    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "chatcore.settings",
            "CHATCORE_DATABASE_URL": build_database_url(),
            "CHATCORE_LOCAL_MODEL": "0.5b",
            "CHATCORE_LOCAL_MODEL_WINDOW": str(WINDOW),
            "CHATCORE_LOCAL_MODEL_PORT": str(self.port),
            "CHATCORE_LOCAL_MODEL_API_KEY": API_KEY,
        }

    def wait_until_ready(self) -> None:
        def is_ready() -> bool:
            assert self.process.poll() is None, self.output.read_text()
            return "is ready" in self.output.read_text()

        wait_until(is_ready, seconds=300, what="the embedded model")

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(60)


@pytest.fixture(scope="module")
def embedded(
    django_db_setup: None,
    django_db_blocker: DjangoDbBlocker,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Embedded]:
    """Started once: its rows are read by the first test that needs them, through `described`."""
    assert weights.find_weights(
        weights.WEIGHTS_BY_SIZE["0.5b"], folders=settings.LOCAL_MODEL["FOLDERS"], print_line=print
    ), "./bin/test fetches the weights"
    running = Embedded(tmp_path_factory.mktemp("model") / "output")
    running.wait_until_ready()
    yield running
    assert running.stop() == 0


@pytest.fixture
def described(embedded: Embedded) -> AiModel:
    """The registry's row, written anew: each test starts with an empty database."""
    return register.register_model(embedded.base_url, API_KEY)


def client(embedded: Embedded, api_key: str = API_KEY) -> openai.OpenAI:
    return openai.OpenAI(base_url=embedded.base_url, api_key=api_key, max_retries=0)


def name_model(embedded: Embedded) -> str:
    """Return the name of the weights that this machine has."""
    return client(embedded).models.list().data[0].id


def test_it_answers_in_words_and_counts_its_tokens(embedded: Embedded) -> None:
    question = "What is the capital of France? Answer with one word."
    answer = client(embedded).chat.completions.create(
        model=name_model(embedded),
        messages=[{"role": "user", "content": question}],
        max_tokens=12,
        temperature=0,
    )
    assert "Paris" in (answer.choices[0].message.content or "")
    assert answer.usage
    assert answer.usage.prompt_tokens > 10


def test_it_streams_and_ends_with_a_reason_and_usage(embedded: Embedded) -> None:
    stream = client(embedded).chat.completions.create(
        model=name_model(embedded),
        messages=[{"role": "user", "content": "Count from one to five."}],
        max_tokens=24,
        stream=True,
        stream_options={"include_usage": True},
    )
    chunks = list(stream)
    assert sum(bool(chunk.choices and chunk.choices[0].delta.content) for chunk in chunks) > 1
    assert {chunk.choices[0].finish_reason for chunk in chunks if chunk.choices} & {
        "stop",
        "length",
    }
    assert chunks[-1].usage


def test_the_registry_has_its_true_window_and_makes_it_the_default(described: AiModel) -> None:
    assert described.name in {each.name for each in weights.WEIGHTS_BY_SIZE["0.5b"]}
    assert described.context_window_size == WINDOW
    assert described.supports_tools
    assert (
        list_session_tools(Session(model=described), ActiveRevision()) == []
    )  # a client's tools alone
    assert AiModel.objects.find_default() == described
    assert described.provider.reveal_api_key() == API_KEY


def test_a_default_that_someone_chose_stays(embedded: Embedded) -> None:
    provider = Provider.objects.create(name="chosen", protocol=Provider.Protocol.OPENAI)
    chosen = AiModel.objects.create(provider=provider, name="chosen")
    chosen.make_default()
    register.register_model(embedded.base_url, API_KEY)
    assert AiModel.objects.find_default() == chosen


def test_a_withdrawn_model_is_offered_to_nobody_until_it_registers_again(
    embedded: Embedded, described: AiModel
) -> None:
    register.withdraw_model()
    assert AiModel.objects.find_default() is None
    assert register.register_model(embedded.base_url, API_KEY) == described
    assert AiModel.objects.find_default() == described


def test_more_than_its_window_is_an_overflow_error_with_both_numbers(embedded: Embedded) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client(embedded).chat.completions.create(
            model=name_model(embedded),
            messages=[{"role": "user", "content": "word " * (WINDOW + 100)}],
            max_tokens=1,
        )
    assert refused.value.body
    assert "exceed_context_size_error" in str(refused.value.body)
    assert str(WINDOW) in str(refused.value.body)


def test_it_refuses_who_has_not_its_key(embedded: Embedded) -> None:
    with pytest.raises(openai.AuthenticationError):
        client(embedded, api_key="another").chat.completions.create(
            model="x", messages=[{"role": "user", "content": "hello"}]
        )


def test_it_answers_in_a_chat_and_sums_it_up(described: AiModel, api: APIClient) -> None:
    new = {"params": {"max_tokens": 24, "temperature": 0}, "system_prompt": "Be brief."}
    path = f"/api/v1/sessions/{api.post('/api/v1/sessions', new).json()['id']}"
    notes = [
        {"role": role, "content": content}
        for line in STORY * 2
        for role, content in (("user", line), ("assistant", "That is noted."))
    ]
    assert api.post(f"{path}/messages/import", {"messages": notes}).status_code == 201
    runs = (api.post(f"{path}/compact", {"wait": True}).json() for _ in range(MAX_RUNS))
    run = next((run for run in runs if run["status"] == "applied"), None)
    assert run, "no summary could be used"
    assert run["tokens_after"] < run["tokens_before"]
    assert re.search("Ada|bakery|party|Lentos|Pacheco", run["summary_after"])
    answer = api.post(f"{path}/messages", {"content": "Where is the bakery?"}).json()
    assert answer["status"] == "completed"
    assert answer["assistant_message"]["content"]
