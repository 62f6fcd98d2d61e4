"""What is lost when something breaks: `python -m measure.faults [--database NAME] [SCENARIO …]`.

Each scenario starts the whole product in a folder of its own, lets clients talk, breaks something,
and then compares what is stored with what was acknowledged and shown. It prints a line for each,
and ends with 1 if a word was lost, doubled or changed, or `verify` is not clean.
"""

import argparse
import base64
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")

import django

django.setup()

import httpx2  # noqa: E402
import psutil  # noqa: E402
import psycopg  # noqa: E402

from measure.soak.faults import list_processes  # noqa: E402
from measure.soak.ledger import Client, Ledger, check_ledger, wait_for_calm  # noqa: E402
from tests.support.clock import Clock  # noqa: E402
from tests.support.compaction_sessions import SUMMARY  # noqa: E402
from tests.support.mcp_server import run_tool_server  # noqa: E402
from tests.support.pgbouncer import PgBouncer  # noqa: E402
from tests.support.postgres_server import PostgresServer  # noqa: E402
from tests.support.scripted_model import ScriptedModel, make_tool_call  # noqa: E402
from tests.support.scripted_wire import Reply  # noqa: E402
from tests.support.served_product import ServedProduct, serve  # noqa: E402
from tests.support.served_streams import find_web_processes, register_model  # noqa: E402
from tests.support.served_talks import Listener, create_session, open_api, say  # noqa: E402
from tests.support.waiting import wait_until  # noqa: E402

CLIENTS = 4
TALK_SECONDS = 15.0  # before and after something happens
COUNTING = Reply(chunks=[f"word{number} " for number in range(60)], chunk_delay=0.1)
LONG_COUNTING = Reply(chunks=[f"word{number} " for number in range(60)], chunk_delay=0.25)


def answer(request: dict[str, Any]) -> Reply:
    if "<transcript>" in str(request.get("messages", "")):
        return Reply(text=SUMMARY)
    is_counting = "Count." in str(request["messages"][-1]["content"])
    return COUNTING if is_counting else Reply(text="A heron, as you say.")


@dataclass
class Stage:
    """A served product, and the people who talk with it."""

    kind: str
    folder: Path
    product: ServedProduct
    scripted: ScriptedModel
    postgres: PostgresServer | None
    ledger: Ledger = field(default_factory=Ledger)
    stopping: threading.Event = field(default_factory=threading.Event)
    clients: list[Client] = field(default_factory=list)

    def talk(self, count: int = CLIENTS, product: ServedProduct | None = None) -> None:
        """Let clients talk until the end of the scenario."""
        url = (product or self.product).url
        clients = [
            Client(url, self.product.token, self.ledger, self.stopping) for _ in range(count)
        ]
        for client in clients:
            client.start()
        self.clients += clients

    def finish(self) -> dict[str, Any]:
        """End the talks, and return what was lost."""
        self.stopping.set()
        for client in self.clients:
            client.join()
        self.scripted.default = answer
        wait_for_calm(self.product.url, self.product.token, self.ledger)
        return {
            "acknowledged": len(self.ledger.messages),
            "lost": check_ledger(self.product.url, self.product.token, self.ledger),
            "undocumented": dict(self.ledger.undocumented),
            "verify": self.product.run_command("verify").splitlines()[-1],
        }

    def listen(self, api: httpx2.Client, count: int) -> list[Listener]:
        """Let so many answers begin."""
        listeners = [Listener(api, create_session(api)) for _ in range(count)]
        for listener in listeners:
            listener.wait_for_words()
        return listeners

    def put_setting(self, **variables: str) -> None:
        """Start the product anew with other variables."""
        self.product.stop()
        self.product.environment |= variables
        self.product.start()
        wait_until(lambda: is_ready(self.product), what="the product is ready again")

    @contextlib.contextmanager
    def open_other_machine(self, **changed: str) -> Iterator[ServedProduct]:
        """Serve the same database from a folder of its own."""
        variables = {
            name: value
            for name, value in self.product.environment.items()
            if name.startswith("CHATCORE_") and name != "CHATCORE_DATA_DIR"
        }
        arguments = ("--no-local-model", "--web", "1", "--workers", "1")
        with serve(self.folder / "other", *arguments, **(variables | changed)) as other:
            wait_until(lambda: is_ready(other), what="the other machine")
            other.token = self.product.token
            yield other


@contextlib.contextmanager
def open_stage(kind: str, *, web: int = 2, **variables: str) -> Iterator[Stage]:
    """Serve the product over a database of its own."""
    with contextlib.ExitStack() as stack:
        folder = tempfile.TemporaryDirectory(prefix="chatcore-faults-", ignore_cleanup_errors=True)
        path = Path(stack.enter_context(folder))
        scripted = stack.enter_context(ScriptedModel())
        scripted.default = answer
        postgres = stack.enter_context(PostgresServer()) if kind == "postgres" else None
        limits = {
            "CHATCORE_LOG_LEVEL": "CRITICAL",
            "CHATCORE_TURNS_PER_MINUTE": "100000",
            "CHATCORE_TURNS_AT_ONCE_PER_USER": "200",
            **(postgres.variables if postgres else {}),
        }
        arguments = ("--no-local-model", "--web", str(web), "--workers", "1")
        product = serve(path / "var", *arguments, **(limits | variables))
        stage = Stage(kind, path, stack.enter_context(product), scripted, postgres)
        register_model(stage.product, scripted)
        yield stage


def is_ready(product: ServedProduct) -> bool:
    with contextlib.suppress(httpx2.HTTPError):
        return httpx2.get(f"{product.url}/readyz", timeout=30).status_code == 200
    return False


def add_person(product: ServedProduct, name: str) -> str:
    """Return a token of a new person."""
    code = (
        "from django.contrib.auth import get_user_model; from knox.models import AuthToken;"
        f"print(AuthToken.objects.create(get_user_model().objects.create_user('{name}'))[1])"
    )
    return product.run_command("shell", "-c", code).split()[-1]


def check_shown(listeners: list[Listener], api: httpx2.Client) -> str:
    """Check that every word that was shown is stored; return how many answers are whole."""
    for listener in listeners:
        listener.check()
        assert COUNTING.words.startswith(listener.text)
        assert say(api, listener.session)["assistant_message"]["status"] == "complete"
    whole_count = sum(listener.text == COUNTING.words for listener in listeners)
    return f"{whole_count} of {len(listeners)}"


# The scenarios. Each returns its figures.


def kill(kind: str, count: int = 200) -> dict[str, Any]:
    """Kill one process after another; each tenth time the first one, which is started again."""
    killed: Counter[str] = Counter()
    with open_stage(kind) as stage:
        stage.talk()
        for number in range(count):
            time.sleep(random.uniform(2, 5))
            if number % 10 == 9:
                killed["serve"] += 1
                stage.product.kill()
                stage.product.start()
                continue
            kinds = wait_for_children(stage.product)
            name = random.choice(sorted(kinds))
            with contextlib.suppress(psutil.NoSuchProcess):
                psutil.Process(random.choice(kinds[name])).kill()
                killed[name] += 1
        return {"killed": dict(killed)} | stage.finish()


def wait_for_children(product: ServedProduct) -> dict[str, list[int]]:
    """Return the processes below the first one by what they do, once there are any."""
    kinds: dict[str, list[int]] = {}

    def look() -> bool:
        for pid, words in list_processes(product.pid):
            names = ("web_server", "qcluster", "worker")
            kinds.setdefault(next((n for n in names if n in words), "other"), []).append(pid)
        return bool(kinds)

    wait_until(look, what="the product's processes")
    return kinds


def stop_database(kind: str) -> dict[str, Any]:
    """Stop PostgreSQL for 2, 20 and 60 seconds in the middle of six answers."""
    figures: dict[str, Any] = {}
    with open_stage(kind) as stage, open_api(stage.product) as api:
        assert stage.postgres
        stage.talk()
        for seconds in (2, 20, 60):
            listeners = stage.listen(api, 6)
            stage.postgres.stop("fast")
            time.sleep(seconds)
            stage.postgres.start()
            back = time.monotonic()
            wait_until(lambda: is_ready(stage.product), what="readyz")
            ready_seconds = time.monotonic() - back
            whole = check_shown(listeners, api)
            figures[f"away {seconds} s"] = f"{whole} whole, ready after {ready_seconds:.1f} s"
        return figures | stage.finish()


def lock_file(kind: str) -> dict[str, Any]:
    """Write-lock SQLite's file by another program for 2, 20 and 46 seconds, amid six answers."""
    import sqlite3

    figures: dict[str, Any] = {}
    with open_stage(kind) as stage, open_api(stage.product) as api:
        stage.talk()
        for seconds in (2, 20, 46):
            listeners = stage.listen(api, 6)
            file = Path(stage.product.environment["CHATCORE_DATA_DIR"]) / "chatcore.sqlite3"
            other = sqlite3.connect(file, isolation_level=None, timeout=60)
            other.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            other.close()
            figures[f"locked {seconds} s"] = f"{check_shown(listeners, api)} whole"
        return figures | stage.finish()


def lose_machine(kind: str) -> dict[str, Any]:
    """Lose one of two machines, with six answers and a run in hand."""
    with open_stage(kind) as stage, contextlib.ExitStack() as stack:
        api = stack.enter_context(open_api(stage.product))
        stage.scripted.default = answer
        session = create_session(api, policy="oneclaw")
        history = [
            {"role": ("user", "assistant")[number % 2], "content": "a heron on a lake " * 120}
            for number in range(14)
        ]
        api.post(f"/sessions/{session}/messages/import", json={"messages": history})
        summary_is_asked = threading.Event()

        def keep_waiting(_: Any) -> Reply:
            summary_is_asked.set()
            return Reply(text=SUMMARY, delay=600)

        stage.scripted.script(keep_waiting)
        run = api.post(f"/sessions/{session}/compact", json={}).json()["id"]
        assert summary_is_asked.wait(120)

        other = stack.enter_context(stage.open_other_machine())
        other_api = stack.enter_context(open_api(other))
        stage.talk(product=other)
        begun = [(create_session(api)) for _ in range(6)]
        listeners = [Listener(api, chat, reader=other_api) for chat in begun]
        for listener in listeners:
            listener.wait_for_words()
        processes = [psutil.Process(stage.product.pid)]
        processes += processes[0].children(recursive=True)
        for process in processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        lost_at = time.monotonic()
        free = [measure_until_free(other_api, chat, lost_at) for chat in begun]
        for listener in listeners:
            listener.check()

        def is_applied() -> bool:
            return bool(other_api.get(f"/compactions/{run}").json()["status"] == "applied")

        wait_until(is_applied, seconds=400, what="the run of the lost machine")
        applied_seconds = time.monotonic() - lost_at
        stage.product.start()
        wait_until(lambda: is_ready(stage.product), what="the lost machine is back")
        return {
            "sessions free after s": f"{min(free):.0f} to {max(free):.0f}",
            "run applied after s": f"{applied_seconds:.0f}",
        } | stage.finish()


def measure_until_free(api: httpx2.Client, session: str, start: float) -> float:
    """Return the seconds until the session took the next message."""

    def is_free() -> bool:
        answer = api.post(f"/sessions/{session}/messages", json={"content": "And now?"})
        return answer.status_code == 201

    wait_until(is_free, what="the session is free")
    return time.monotonic() - start


def pool_by_pgbouncer(kind: str) -> dict[str, Any]:
    """Answer over PgBouncer as it is, restarted, and killed for 8 seconds."""
    figures: dict[str, Any] = {}
    relay = "chatcore.events.relays.polling.PollingRelay"
    with (
        open_stage(kind, CHATCORE_EVENT_RELAY=relay) as stage,
        open_api(stage.product) as api,
    ):
        assert stage.postgres
        pooler = PgBouncer(stage.folder / "pgbouncer", stage.postgres.port)
        pooler.start()
        try:
            stage.put_setting(CHATCORE_DATABASE_URL=pooler.url)
            stage.talk()
            for name, seconds in (("as it is", None), ("restarted", 0.0), ("killed for 8 s", 8.0)):
                listeners = stage.listen(api, 10)
                if seconds is not None:
                    pooler.kill()
                    time.sleep(seconds)
                    pooler.start()
                figures[name] = f"{check_shown(listeners, api)} whole"
            return figures | stage.finish()
        finally:
            pooler.kill()


def rotate_keys(kind: str) -> dict[str, Any]:
    """Rotate the key that seals secrets while people talk, and take the old one away."""
    old, new = (base64.urlsafe_b64encode(os.urandom(32)).decode() for _ in range(2))
    with open_stage(kind) as stage:
        stage.put_setting(CHATCORE_KEY_ENCRYPTION_KEYS=old)
        code = (
            "from models_registry.models import Provider;"
            "provider = Provider.objects.get(name='scripted');"
            "provider.api_key = 'a key of the trial'; provider.save()"
        )
        stage.product.run_command("shell", "-c", code)
        stage.talk()
        time.sleep(TALK_SECONDS)
        stage.put_setting(CHATCORE_KEY_ENCRYPTION_KEYS=f"{new},{old}")
        time.sleep(TALK_SECONDS)
        said = stage.product.run_command("rotate_keys")
        stage.put_setting(CHATCORE_KEY_ENCRYPTION_KEYS=new)
        time.sleep(TALK_SECONDS)
        figures = stage.finish()
        sent = stage.scripted.requests[-1].headers.get("authorization", "")
        assert sent.endswith("a key of the trial"), "the provider's key came through"
        return {"said": said} | figures


def restore_backup(kind: str) -> dict[str, Any]:
    """Back up while people talk, and restore elsewhere: what was acknowledged before is there."""
    with open_stage(kind) as stage:
        stage.talk()
        time.sleep(TALK_SECONDS)
        before = dict(stage.ledger.messages)
        stage.product.run_command("backup", str(stage.folder / "backup"))
        elsewhere = {"CHATCORE_DATA_DIR": str(stage.folder / "elsewhere")}
        if stage.postgres:
            with psycopg.connect(stage.postgres.url, autocommit=True) as connection:
                connection.execute("CREATE DATABASE elsewhere")
            url = f"{stage.postgres.url.rpartition('/')[0]}/elsewhere"
            elsewhere["CHATCORE_DATABASE_URL"] = url
        copy = ServedProduct(0, (), stage.product.environment | elsewhere)
        copy.run_command("restore", str(stage.folder / "backup"))
        code = (
            "import json; from chatcore.models import Message;"
            "print(json.dumps(dict(Message.objects.values_list('pk', 'content'))))"
        )
        stored = json.loads(copy.run_command("shell", "-c", code).splitlines()[-1])
        missing = [pk for pk, (_, text) in before.items() if stored.get(str(pk)) != text]
        figures = {
            "acknowledged before": len(before),
            "missing in the copy": missing,
            "verify of the copy": copy.run_command("verify").splitlines()[-1],
        }
        assert not missing
        return figures | stage.finish()


def drain(kind: str) -> dict[str, Any]:
    """Ask the web processes to start anew under 40 answers, with 30 seconds of grace."""
    with open_stage(kind, CHATCORE_DRAIN_SECONDS="30") as stage, open_api(stage.product) as api:
        stage.talk()
        listeners = stage.listen(api, 40)
        before = set(find_web_processes(stage.product))
        start = time.monotonic()
        os.kill(stage.product.pid, signal.SIGHUP)
        whole = check_shown(listeners, api)
        wait_until(lambda: not before & set(find_web_processes(stage.product)), what="renewal")
        seconds = time.monotonic() - start
        return {"whole": whole, "renewed after s": round(seconds, 1)} | stage.finish()


def retain(kind: str) -> dict[str, Any]:
    """Delete by age beside people who talk and a person on hold."""
    with open_stage(kind) as stage:
        code = (
            "from datetime import timedelta; from django.utils import timezone;"
            "from django.contrib.auth import get_user_model; from chatcore.models import Session;"
            "from chatcore.contrib.holds.models import Hold;"
            "users = [get_user_model().objects.create_user(n) for n in ('held', 'free')];"
            "Hold.objects.create(user=users[0], reason='a trial');"
            "[Session.objects.create(owner=u, title='old') for u in users for _ in range(30)];"
            "Session.objects.filter(title='old').update("
            "created_at=timezone.now() - timedelta(days=40),"
            "updated_at=timezone.now() - timedelta(days=40))"
        )
        stage.product.run_command("shell", "-c", code)
        stage.talk()
        time.sleep(TALK_SECONDS)
        stage.put_setting(CHATCORE_SESSION_RETENTION_DAYS="30")
        code = (
            "from chatcore.models import Session;"
            "print(*[Session.objects.filter(title='old', owner__username=n).count()"
            " for n in ('held', 'free')])"
        )

        def count_left() -> str:
            return stage.product.run_command("shell", "-c", code).splitlines()[-1]

        wait_until(lambda: count_left().endswith(" 0"), what="the old chats go")
        return {"old chats left, held and free": count_left()} | stage.finish()


def set_clock_wrong(kind: str) -> dict[str, Any]:
    """Start a machine whose clock is 40 days ahead, where chats are kept for 30 days."""
    with open_stage(kind, CHATCORE_SESSION_RETENTION_DAYS="30") as stage:
        clock = Clock(stage.folder)
        clock.set(40)
        with open_api(stage.product) as api:
            chats = [create_session(api, temporary=number < 3) for number in range(11)]
            for chat in chats:
                say(api, chat)
        stage.talk()
        with contextlib.ExitStack() as stack:
            wrong = stage.product
            if stage.postgres:
                wrong = stack.enter_context(stage.open_other_machine(**clock.variables))
            else:
                stage.put_setting(**clock.variables)
            api = stack.enter_context(open_api(stage.product))
            time.sleep(60)  # three times as long as it took to delete everything
            left = [chat for chat in chats if api.get(f"/sessions/{chat}").is_success]
            said = httpx2.get(f"{wrong.url}/readyz", timeout=30)
            figures = {"left": f"{len(left)} of {len(chats)}", "readyz": said.text}
            clock.set(0)
        assert left == chats
        return figures | stage.finish()


def keep_tools_silent(kind: str, web: int = 1) -> dict[str, Any]:
    """Let one person wait for 200 silent tools, while twenty answers of others stream."""
    with contextlib.ExitStack() as stack:
        tools = stack.enter_context(run_tool_server())
        stage = stack.enter_context(
            open_stage(kind, web=web, CHATCORE_FETCH_ALLOW_HOSTS=tools.host)
        )
        api = stack.enter_context(open_api(stage.product))
        alice = {"Authorization": f"Bearer {add_person(stage.product, 'alice')}"}
        body = {"name": "files", "url": tools.url, "require_approval": "never"}
        server = api.post("/mcp_servers", json=body, headers=alice)
        assert server.status_code == 201, server.text
        name = next(tool["name"] for tool in server.json()["tools"] if "wait" in tool["name"])

        def reply(request: dict[str, Any]) -> Reply:
            asks = any(name in str(tool) for tool in request.get("tools", []))
            if asks and request["messages"][-1]["role"] != "tool":
                calls = [make_tool_call(name, {"number": n}, id=f"c{n}") for n in range(10)]
                return Reply(tool_calls=calls)
            return answer(request)

        stage.scripted.default = reply
        at_rest = measure_reads(api, 5)
        for _ in range(20):
            session = api.post("/sessions", json={"tools": [name]}, headers=alice).json()["id"]
            path = f"/sessions/{session}/messages"
            headers = alice | {"Prefer": "respond-async"}
            begun = api.post(path, json={"content": "Wait."}, headers=headers)
            assert begun.status_code == 202, begun.text
        wait_until(lambda: tools.silent_calls >= 8, what="silent calls")
        listeners = stage.listen(api, 20)
        meanwhile = measure_reads(api, 20)
        ready = httpx2.get(f"{stage.product.url}/readyz", timeout=30).status_code
        whole = check_shown(listeners, api)
        tools.gate.set()
        return {
            "whole answers of others": whole,
            "readyz": ready,
            "longest read at rest, s": round(at_rest, 2),
            "meanwhile": round(meanwhile, 2),
        } | stage.finish()


def measure_reads(api: httpx2.Client, seconds: float) -> float:
    """Read for so long, and return the longest wait."""
    longest = 0.0
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        start = time.monotonic()
        assert api.get("/sessions").status_code == 200
        longest = max(longest, time.monotonic() - start)
        time.sleep(0.05)
    return longest


def keep_tools_silent_on_two(kind: str) -> dict[str, Any]:
    """Do the same beside a second web process."""
    return keep_tools_silent(kind, web=2)


SCENARIOS: dict[str, Callable[[str], dict[str, Any]]] = {
    "kills": kill,
    "away": stop_database,
    "locked": lock_file,
    "machines": lose_machine,
    "pgbouncer": pool_by_pgbouncer,
    "rotation": rotate_keys,
    "backup": restore_backup,
    "draining": drain,
    "retention": retain,
    "clock": set_clock_wrong,
    "silent": keep_tools_silent,
    "silent2": keep_tools_silent_on_two,
}
ONLY = {"away": "postgres", "machines": "postgres", "pgbouncer": "postgres", "locked": "sqlite"}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m measure.faults", description=__doc__)
    parser.add_argument("scenarios", nargs="*", help=", ".join(SCENARIOS))
    parser.add_argument("--database", choices=["sqlite", "postgres"])
    options = parser.parse_args()
    kinds = [options.database] if options.database else ["sqlite", "postgres"]
    is_sound = True
    for name, kind in itertools.product(options.scenarios or SCENARIOS, kinds):
        if ONLY.get(name, kind) != kind:
            continue
        start = time.monotonic()
        figures = SCENARIOS[name](kind)
        is_sound &= not figures["lost"] and not figures["undocumented"]
        is_sound &= " 0 viol" in figures["verify"]
        print(f"{name}, {kind}, {time.monotonic() - start:.0f} s, load {os.getloadavg()[1]:.1f}:")
        print(json.dumps(figures, indent=1, ensure_ascii=False), flush=True)
    return int(not is_sound)


if __name__ == "__main__":
    sys.exit(main())
