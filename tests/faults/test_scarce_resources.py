"""A web process runs out of descriptors, memory or room for a file: words, no crash, no loss."""

import contextlib
import os
import resource
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.served_product import ServedProduct, serve
from tests.support.served_streams import find_web_processes, register_model
from tests.support.served_talks import Listener, create_session, open_api, say
from tests.support.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.faults, pytest.mark.lasting, pytest.mark.slow]

# What a client may be told; a connection that the server cannot accept is refused by the kernel.
CALM = (200, 201, 409, 503, 507)


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        server.default = Reply(text="Noted.")
        yield server


@pytest.fixture(scope="module")
def product(
    tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedModel
) -> Iterator[ServedProduct]:
    folder = tmp_path_factory.mktemp("scarce")
    with serve(folder, "--no-local-model", "--web", "1", "--workers", "1") as product:
        register_model(product, scripted)
        yield product


@pytest.fixture(scope="module")
def api(product: ServedProduct) -> Iterator[httpx2.Client]:
    with open_api(product) as api:
        yield api


@contextlib.contextmanager
def limit(product: ServedProduct, kind: int, amount: int) -> Iterator[int]:
    """Bound a resource of the living web process, and yield the process's id."""
    pid = find_web_processes(product)[0]
    before = resource.prlimit(pid, kind)
    resource.prlimit(pid, kind, (amount, before[1]))
    try:
        yield pid
    finally:
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, kind, before)


def read_memory(pid: int) -> int:
    """Return the bytes of address space that the process has."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def send_calmly(api: httpx2.Client, session: str, content: str) -> int:
    """Send a message, and return the status of a calm answer; 0 if the connection was refused."""
    try:
        answer = api.post(f"/sessions/{session}/messages", json={"content": content})
    except httpx2.HTTPError:
        return 0
    assert answer.status_code in CALM, answer.text
    return answer.status_code


def check_all_is_well(api: httpx2.Client, product: ServedProduct, session: str, pid: int) -> None:
    """The same process goes on, everything acknowledged is there, and nothing is broken."""
    assert say(api, session)["assistant_message"]["content"] == "Noted."
    assert find_web_processes(product) == [pid], "it was restarted"
    assert product.run_command("verify").endswith("0 violations")


def test_a_process_without_descriptors_serves_again_when_connections_are_closed(
    api: httpx2.Client, product: ServedProduct, scripted: ScriptedModel
) -> None:
    session = create_session(api)
    say(api, session)
    pid = find_web_processes(product)[0]
    used = len(os.listdir(f"/proc/{pid}/fd"))
    address = urlsplit(product.url)
    with limit(product, resource.RLIMIT_NOFILE, used + 10), contextlib.ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(socket.create_connection((address.hostname, address.port)))
        for number in range(3):
            send_calmly(api, session, f"Message {number}.")
    check_all_is_well(api, product, session, pid)


def test_a_file_that_may_not_grow_is_507_or_503_and_nothing_acknowledged_is_lost(
    api: httpx2.Client, product: ServedProduct, scripted: ScriptedModel
) -> None:
    session = create_session(api)
    scripted.script(Reply(chunks=["word "] * 30, chunk_delay=0.1))
    listener = Listener(api, session)
    listener.wait_for_words()
    data = Path(product.environment["CHATCORE_DATA_DIR"])
    with limit(product, resource.RLIMIT_FSIZE, (data / "chatcore.sqlite3").stat().st_size) as pid:
        other = httpx2.post(
            f"{product.url}/api/v1/sessions",
            json={"title": "x" * 100},
            headers=api.headers,
            timeout=PATIENCE_SECONDS,
        )
        assert other.status_code in CALM, other.text
        statuses = [send_calmly(api, session, "a heron on a lake " * 9_000) for _ in range(3)]
    listener.join(60)
    stored = api.get(f"/sessions/{session}/messages", params={"limit": 100}).json()["results"]
    assert sum(message["role"] == "user" for message in stored) >= statuses.count(201) + 1
    check_all_is_well(api, product, session, pid)


def test_a_process_without_memory_refuses_and_goes_on(
    api: httpx2.Client, product: ServedProduct, scripted: ScriptedModel
) -> None:
    session = create_session(api)
    say(api, session)
    pid = find_web_processes(product)[0]
    with limit(product, resource.RLIMIT_AS, read_memory(pid) + 4 * 2**20):
        for number in range(3):
            with contextlib.suppress(httpx2.HTTPError):
                api.post(f"/sessions/{session}/messages", json={"content": f"{number} " * 100_000})
    check_all_is_well(api, product, session, pid)
