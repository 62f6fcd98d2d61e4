"""Fixtures for every test: a scripted provider, a user, a language model, a session."""

import asyncio
import gc
import itertools
import os
import threading
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from hypothesis import HealthCheck, settings
from knox.models import AuthToken
from rest_framework.test import APIClient

import chatcore.urls  # noqa: F401 - the pages of the admin, in the order in which they register
from chatcore.base import rare_rows
from chatcore.base.rest import turn_rate
from chatcore.base.runner import turn_runner
from chatcore.base.threads import RECEIVERS
from chatcore.contrib.metrics import definitions, snapshots
from chatcore.models import Session
from chatcore.providers.registry import warm_up
from chatcore.sessions import deletion
from models_registry.models import AiModel, Provider
from tests.support import prepared_database, waiting
from tests.support.compaction_sessions import fill_session, summarize_or_chat
from tests.support.database import close_kept_connections, empty_database, use_fast_flush
from tests.support.scripted_model import ScriptedModel
from tests.support.static_files import share_static_files
from tests.support.waiting import wait_until

# The same examples every time, however slow the machine is; CHATCORE_HYPOTHESIS=random looks for
# new ones.
CALM = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("same", derandomize=True, max_examples=50, **CALM)  # type: ignore[arg-type]
settings.register_profile("random", derandomize=False, **CALM)  # type: ignore[arg-type]
settings.load_profile(os.environ.get("CHATCORE_HYPOTHESIS", "same"))

LONG_WAIT_SECONDS = 10  # the longest waits are told at the end of the run

snapshots.WRITE_SECONDS = 60.0  # a process of tests has the labels of thousands of models
gc.disable()  # until all tests are collected: what is loaded until then stays to the end
use_fast_flush()
share_static_files()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        prepared_database.open_folder()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        prepared_database.remove_folder()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rows", type=int, metavar="N", help="of each table of cases only N rows")


@pytest.hookimpl(trylast=True)  # after the choice by markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    choose_rows(config, items)
    begin_with_the_lasting(config, items)


def choose_rows(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out all but some rows of each table of cases, where --rows asks for it.

    The name of the test says which rows: tests that share a table run different rows of it, and
    each test always the same.
    """
    count = config.getoption("--rows")
    if not count:
        return
    tables: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        whole = item.get_closest_marker("all_rows")
        tables[item.nodeid if whole else item.nodeid.partition("[")[0]].append(item)
    chosen: set[pytest.Item] = set()
    for name, rows in tables.items():
        first = zlib.crc32(name.encode())
        chosen |= {rows[(first + k * len(rows) // count) % len(rows)] for k in range(count)}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]


def begin_with_the_lasting(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what waits for a long time: at the end, nothing would run beside it.

    xdist cuts the list into one part for each process, so each part begins with some of it.
    """
    lasting = [item for item in items if item.get_closest_marker("lasting")]
    others = [item for item in items if not item.get_closest_marker("lasting")]
    files = [list(group) for _, group in itertools.groupby(lasting, lambda item: item.path)]
    process_count = getattr(config, "workerinput", {}).get("workercount", 1)
    total = len(items)
    items.clear()
    for number in range(process_count):
        begin = [item for group in files[number::process_count] for item in group]
        size = max(0, (total - len(items)) // (process_count - number) - len(begin))
        items += [*begin, *others[:size]]
        del others[:size]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Take what the test has waited for to the process that sums up."""
    report = yield
    report.user_properties += [("wait", wait) for wait in waiting.waits]
    waiting.waits.clear()
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    waits = [
        (*wait, report.nodeid)
        for reports in terminalreporter.stats.values()
        for report in reports
        for name, wait in getattr(report, "user_properties", ())
        if name == "wait" and wait[0] >= LONG_WAIT_SECONDS
    ]
    for seconds, what, test in sorted(waits, reverse=True)[:10]:
        terminalreporter.write_line(f"waited {seconds:.0f} s for {what} ({test})")


def pytest_collection_finish() -> None:
    """Take what is loaded by now out of the garbage collector's way: it stays to the end."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # the usual one costs 5 to 9 % of all processor time
    gc.enable()


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """Take the copy of a SQLite database that django_db_modify_db_settings put there."""
    return connection.vendor == "sqlite"


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings: None) -> None:
    """Begin with a copy of a migrated database: migrations take seconds of each process."""
    test_settings = connection.settings_dict["TEST"]
    if connection.vendor == "sqlite":
        prepared_database.copy_database(Path(test_settings["NAME"]))
    else:
        server = os.environ["CHATCORE_DATABASE_URL"]
        test_settings["TEMPLATE"] = prepared_database.name_template(server)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: object) -> Iterator[None]:
    """Begin without the rows that migrations seed, as every test after the first commit does."""
    with django_db_blocker.unblock():  # type: ignore[attr-defined]
        empty_database()
    yield
    if connection.vendor == "sqlite":
        connection.close()
        Path(connection.settings_dict["NAME"]).unlink()


@pytest.fixture(scope="session")
def warm_sdks() -> None:
    """Import the SDK of most tests before one waits for its first answer: it takes seconds."""
    warm_up(["openai"])


@pytest.fixture
def scripted(warm_sdks: None) -> Iterator[ScriptedModel]:
    """A running scripted provider; queue its replies with `scripted.script(...)`."""
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def user(db: None) -> User:
    return User.objects.create_user("alice", password="alice's password")


@pytest.fixture
def model(db: None, scripted: ScriptedModel) -> AiModel:
    """scripted/test-model, window 8,192 tokens, over the OpenAI protocol."""
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
        supports_images=False,
        is_default=True,
    )


@pytest.fixture
def session(user: User, model: AiModel) -> Session:
    return Session.objects.create(owner=user, model=model)


@pytest.fixture
def full(session: Session, scripted: ScriptedModel) -> Session:
    """Over its threshold: 14 messages of 500 tokens in a window of 8,192."""
    scripted.default = summarize_or_chat()
    fill_session(session)
    return session


@pytest.fixture
def give_back_at_once(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Close each connection that is given back, as a pool takes it: whoever holds one shows."""
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)
    close_kept_connections()


@pytest.fixture(autouse=True, scope="session")
def unhurried_deletion() -> None:
    """Let a deletion end in its request, however slow the machine is."""
    deletion.REQUEST_SECONDS = waiting.PATIENCE_SECONDS


@pytest.fixture(autouse=True)
def forget_rare_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask for rare rows once a test, however long it takes."""
    monkeypatch.setattr(rare_rows, "FRESH_SECONDS", 3_600.0)
    rare_rows.RareRows.forget()


@pytest.fixture(autouse=True)
def stop_turns_after_test(_django_db_marker: None) -> Iterator[None]:
    """No turn outlives its test, and none counts against the next one."""
    yield
    turn_runner.stop()
    turn_rate.forget_turns()
    # Each run of a compaction writes all counts, and tests have hundreds of policies.
    for metric in (definitions.RUNS, definitions.RUN_SECONDS, definitions.RUN_RATIO):
        metric.clear()


@pytest.fixture
def hide_the_browsers_loop() -> Iterator[None]:
    """Let a test run an event loop where a browser test ran before.

    Playwright's own loop stays marked as the running one of this thread, also between its tests.
    """
    browsers_loop = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    yield
    asyncio._set_running_loop(browsers_loop)


class SettledClient(APIClient):
    """Returns a response when the receivers of turns have ended, for which no reply waits."""

    def request(self, **kwargs: Any) -> Any:
        response = super().request(**kwargs)
        RECEIVERS.drain(waiting.PATIENCE_SECONDS)
        return response


@pytest.fixture
def as_user() -> Callable[[User], APIClient]:
    """Build a REST client that carries a new token of a user."""

    def build_client(user: User) -> APIClient:
        _, token = AuthToken.objects.create(user)
        return SettledClient(headers={"Authorization": f"Bearer {token}"})

    return build_client


@pytest.fixture
def api(user: User, as_user: Callable[[User], APIClient]) -> APIClient:
    """The REST API as alice sees it."""
    return as_user(user)


@dataclass(frozen=True)
class Live:
    """A running server; `url` has no slash at its end."""

    url: str


@pytest.fixture
def live(transactional_db: None, warm_sdks: None) -> Iterator[Live]:
    """The ASGI application behind a real uvicorn on loopback, over this test's database."""
    # Imported here: most tests need no server, and these imports take a second of each process.
    import uvicorn

    from chatcore.asgi import application
    from chatcore.serving.web_server import build_protocols

    config = uvicorn.Config(
        application,
        host="127.0.0.1",
        port=0,
        lifespan="off",
        log_level="warning",
        timeout_graceful_shutdown=1,
        **build_protocols(),
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, name="live-server")
    thread.start()
    wait_until(lambda: server.started or not thread.is_alive(), what="the server")
    assert server.started, "it could not start"  # before, it is bound but refuses
    try:
        yield Live(url=f"http://127.0.0.1:{socket.getsockname()[1]}")
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        socket.close()
