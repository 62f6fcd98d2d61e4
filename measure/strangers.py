"""Attacks of one person on the memory and the patience of a web process, in a few lines each.

`python -m measure.strangers [--postgres]` starts a web process and a paced provider, lets one
person do what docs/reliability.md tells of, and asks meanwhile as another person. It prints how
much the process grew, and how long the other one waited, and ends with 1 over the limits.
"""

import contextlib
import io
import json
import os
import socket
import sys
import threading
import time
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from measure.benchmarks.load.process_usage import read_memory
from measure.benchmarks.load.product import Product, find_postgres, run_product, run_provider

MB = 1024 * 1024
MAX_GROWTH = 60.0  # MB
MAX_WAIT = 1.0  # seconds that another person's request may take longer than before


def find_model(product: Product) -> str:
    """Return the name of the paced provider's model."""
    headers = {"Authorization": f"Bearer {product.people[0].token}"}
    rows = httpx2.get(f"http://127.0.0.1:{product.port}/v1/models", headers=headers).json()["data"]
    return next(str(row["id"]) for row in rows if row["id"].endswith("test-model"))


def flood_socket(product: Product, letter: str) -> str:
    """Send 32 messages of 15 MB each behind a slow one."""
    token = product.people[0].token
    headers = {"Authorization": f"Bearer {token}"}
    body = {
        "type": "response.create",
        "model": find_model(product),
        "store": False,
        "input": "Count to 400",
    }
    address = f"ws://127.0.0.1:{product.port}/v1/responses"
    with connect(address, additional_headers=headers, proxy=None, max_size=None) as connection:
        connection.send(json.dumps(body))
        connection.recv(timeout=20)
        try:
            for _ in range(32):
                connection.send("x" * 15 * MB + letter)
        except ConnectionClosed as closed:
            return f"closed ({closed.rcvd.code if closed.rcvd else 'cut'})"
    return "all taken"


def send_archive(product: Product, item: bytes) -> str:
    """Send ZIP files of 20 KB, four at once, that unpack to 20 MB of empty values."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", b"[" + (item + b",") * 6_990_000 + item + b"]")
    return post_often(product, "/api/v1/imports", file.getvalue(), "application/zip")


def send_body(product: Product, item: bytes) -> str:
    """Send bodies of 20 MB of empty values, four at once."""
    content = b'{"messages": [' + (item + b",") * 6_990_000 + item + b"]}"
    return post_often(product, "/v1/chat/completions", content, "application/json")


def name_silent_servers(product: Product) -> str:
    """Bring a tool server along that takes connections and says nothing, 20 times at once."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/mcp"
        tool = {"type": "mcp", "server_label": "silent", "server_url": url}
        body = {
            "model": find_model(product),
            "input": "Count to 1",
            "store": False,
            "tools": [tool],
        }
        headers = {"Authorization": f"Bearer {product.people[0].token}"}

        def ask(_: int) -> str:
            address = f"http://127.0.0.1:{product.port}/v1/responses"
            try:
                answer = httpx2.post(address, json=body, headers=headers, timeout=20)
            except httpx2.TimeoutException:
                return "waits"
            return str(answer.status_code)

        with ThreadPoolExecutor(20) as threads:
            results = Counter(threads.map(ask, range(20)))
    return ", ".join(f"{number} {result}" for result, number in results.items())


def post_often(product: Product, path: str, content: bytes, kind: str) -> str:
    """Post a body four times at once; return the statuses."""
    headers = {"Authorization": f"Bearer {product.people[0].token}", "Content-Type": kind}

    def post(_: int) -> int:
        url = f"http://127.0.0.1:{product.port}{path}"
        return httpx2.post(url, content=content, headers=headers, timeout=120).status_code

    with ThreadPoolExecutor(4) as threads:
        return " ".join(map(str, threads.map(post, range(4))))


ATTACKS: dict[str, Callable[[Product], str]] = {
    "O2 silent tool servers": name_silent_servers,  # the first one also loads the SDK
    "O2 again": name_silent_servers,
    "S1 socket, plain letters": lambda product: flood_socket(product, "x"),
    "S1 socket, one wide letter": lambda product: flood_socket(product, "\N{GRINNING FACE}"),
    "S2 archives of objects": lambda product: send_archive(product, b"{}"),
    "S2 archives of lists": lambda product: send_archive(product, b"[]"),
    "S2 bodies of /v1": lambda product: send_body(product, b"{}"),
}


@contextlib.contextmanager
def ask_meanwhile(product: Product, waits: list[float]) -> Iterator[None]:
    """Ask for the list of chats as somebody else, again and again, and note how long it takes."""
    stopping = threading.Event()
    headers = {"Authorization": f"Bearer {product.people[1].token}"}

    def ask() -> None:
        url = f"http://127.0.0.1:{product.port}/api/v1/sessions"
        while not stopping.is_set():
            start = time.monotonic()
            assert httpx2.get(url, headers=headers, timeout=60).status_code == 200
            waits.append(time.monotonic() - start)
            stopping.wait(0.05)

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def run_attack(product: Product, attack: Callable[[Product], str]) -> tuple[str, float, float]:
    """Return what came of an attack, the MB that the process grew, and the longest wait."""
    before, peak = read_memory(product.pid), [0.0]
    stopping = threading.Event()

    def sample() -> None:
        while not stopping.wait(0.05):
            peak[0] = max(peak[0], read_memory(product.pid))

    sampler = threading.Thread(target=sample)
    sampler.start()
    waits: list[float] = []
    try:
        with ask_meanwhile(product, waits):
            result = attack(product)
    finally:
        stopping.set()
        sampler.join()
    return result, peak[0] - before, max(waits)


def main() -> int:
    """Run all attacks against one web process."""
    os.environ["CHATCORE_FETCH_ALLOW_HOSTS"] = "127.0.0.1"  # for the silent tool server
    postgres_url = find_postgres() if "--postgres" in sys.argv else None
    is_over = False
    with (
        run_provider(20) as provider_port,
        run_product(provider_port, postgres_url=postgres_url, people=2, sessions=1) as product,
    ):
        waits: list[float] = []
        with ask_meanwhile(product, waits):
            time.sleep(5)
        print(f"longest wait at rest: {max(waits):.2f} s; memory {read_memory(product.pid):.0f} MB")
        for name, attack in ATTACKS.items():
            row: tuple[Any, ...] = run_attack(product, attack)
            is_over |= row[1] > MAX_GROWTH or row[2] > max(waits) + MAX_WAIT
            print(f"{name:28} {row[0]:20} peak +{row[1]:.0f} MB, longest wait {row[2]:.2f} s")
    return int(is_over)


if __name__ == "__main__":
    sys.exit(main())
