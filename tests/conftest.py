"""What every test may ask for: a scripted provider, a user, a language model reached over loopback, a session."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
import uvicorn
from django.contrib.auth.models import User
from hypothesis import HealthCheck, settings
from knox.models import AuthToken
from playwright.sync_api import expect
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.turns.runner import turn_runner
from models_registry.models import AiModel, Provider
from tests.support.compaction_scenes import fill, summarize_or_chat
from tests.support.scripted import ScriptedModel

# How long a page may take on a busy machine, in milliseconds: what is right is there at once, only what is wrong waits for this.
EXPECT_TIMEOUT = 15_000
NAVIGATION_TIMEOUT = 30_000
expect.set_options(timeout=EXPECT_TIMEOUT)

# The same examples every time, however slow the machine is; CHATCORE_HYPOTHESIS=random looks for new ones.
settings.register_profile(
    "same", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "random", deadline=None, derandomize=False, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("CHATCORE_HYPOTHESIS", "same"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What waits for the language model begins first: it takes longest, and another worker does all the rest meanwhile."""
    items.sort(key=lambda item: item.get_closest_marker("model") is None)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A test that passed only when it ran again is nothing to be quiet about."""
    for report in terminalreporter.stats.get("rerun", []):
        terminalreporter.write_sep(
            "!", f"FAILED AND RAN AGAIN: {report.nodeid}", red=True, bold=True
        )


@pytest.fixture
def scripted() -> Iterator[ScriptedModel]:
    """A running scripted provider; queue its replies with `scripted.script(...)`."""
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("alice", password="alice's password")


@pytest.fixture
def model(db: None, scripted: ScriptedModel) -> AiModel:
    """scripted/test-model, window 8,192, over the OpenAI protocol."""
    provider = Provider.objects.create(
        name="scripted",
        protocol=Provider.Protocol.OPENAI,
        base_url=scripted.base_url,
        timeout_seconds=20,
    )
    return AiModel.objects.create(
        provider=provider,
        name="test-model",
        context_window_size=8192,
        supports_tools=True,
        is_default=True,
    )


@pytest.fixture
def session(user: User, model: AiModel) -> Session:
    return Session.objects.create(owner=user, model=model)


@pytest.fixture
def full(session: Session, scripted: ScriptedModel) -> Session:
    """Over its threshold: 14 messages of 500 tokens in a window of 8,192."""
    scripted.default = summarize_or_chat()
    fill(session)
    return session


@pytest.fixture(autouse=True)
def quiet_generator(_django_db_marker: None) -> Iterator[None]:
    """No turn outlives its test."""
    yield
    turn_runner.stop()


@pytest.fixture
def as_user() -> Callable[[User], APIClient]:
    """A REST client that carries a new token of a user's."""

    def client(user: User) -> APIClient:
        _, token = AuthToken.objects.create(user)
        return APIClient(headers={"Authorization": f"Bearer {token}"})

    return client


@pytest.fixture
def api(user: User, as_user: Callable[[User], APIClient]) -> APIClient:
    """The REST face as alice sees it."""
    return as_user(user)


@dataclass(frozen=True)
class Live:
    """A running server; `url` has no slash at its end."""

    url: str


@pytest.fixture
def live(transactional_db: None) -> Iterator[Live]:
    """The ASGI application behind a real uvicorn on loopback, over this test's database."""
    from chatcore.asgi import application

    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, name="live-server")
    thread.start()
    while not server.started:  # before, it is bound but refuses
        assert thread.is_alive(), "the server could not start"
        time.sleep(0.01)
    try:
        yield Live(url=f"http://127.0.0.1:{socket.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        socket.close()
