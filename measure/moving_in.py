"""Somebody moves in: 1,500 chats of ChatGPT and 300 of Open WebUI, in Chromium, by the clock.

`python -m measure.moving_in [--shots FOLDER] [--chats 1500 300]` starts an installation, imports
both exports by the page, opens what came, imports the first one again, exports everything and
brings it into an empty installation by the command. It ends with 1 if a chat is missing or a step
takes too long.
"""

import argparse
import contextlib
import io
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, expect, sync_playwright

MESSAGES, CHATS_A_FILE = 12, 100
FIRST_SECOND = 1_690_000_000
DAY = 86_400
MAX_SECONDS = 600.0  # of an import
MAX_SEARCH_SECONDS = 10.0
WORDS = "the heron waits beside the water while the light goes and nobody says a word "
COMMAND = [sys.executable, "-m", "chatcore"]


def build_chatgpt(count: int) -> bytes:
    """Return the archive that ChatGPT gives since 2026, of three years of chats."""
    chats = [build_chatgpt_chat(number) for number in range(count)]
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for start in range(0, count, CHATS_A_FILE):
            name = f"conversations-{start // CHATS_A_FILE:03}.json"
            archive.writestr(name, json.dumps(chats[start : start + CHATS_A_FILE]))
        archive.writestr("user.json", "{}")
    return target.getvalue()


def build_chatgpt_chat(number: int) -> dict[str, Any]:
    begin = FIRST_SECOND + number * DAY / 2
    mapping: dict[str, Any] = {"root": {"id": "root", "parent": None, "children": ["0"]}}
    for at in range(MESSAGES):
        mapping[str(at)] = {
            "id": str(at),
            "parent": str(at - 1) if at else "root",
            "children": [str(at + 1)] if at < MESSAGES - 1 else [],
            "message": {
                "author": {"role": "assistant" if at % 2 else "user"},
                "create_time": begin + at,
                "content": {"content_type": "text", "parts": [f"{number}.{at} {WORDS * 6}"]},
                "metadata": {},
            },
        }
    return {
        "conversation_id": f"chat-{number}",
        "title": f"Heron {number}",
        "create_time": begin,
        "update_time": begin + MESSAGES,
        "mapping": mapping,
        "current_node": str(MESSAGES - 1),
    }


def build_openwebui(count: int) -> bytes:
    """Return the list that Open WebUI exports."""
    return json.dumps([build_openwebui_chat(number) for number in range(count)]).encode()


def build_openwebui_chat(number: int) -> dict[str, Any]:
    begin = FIRST_SECOND + number * DAY
    messages = {
        str(at): {
            "id": str(at),
            "parentId": str(at - 1) if at else None,
            "childrenIds": [str(at + 1)] if at < MESSAGES - 1 else [],
            "role": "assistant" if at % 2 else "user",
            "content": f"{number}.{at} {WORDS * 6}",
            "timestamp": begin + at,
        }
        for at in range(MESSAGES)
    }
    chat = {
        "title": f"Owl {number}",
        "history": {"messages": messages, "currentId": str(MESSAGES - 1)},
    }
    times = {"created_at": begin, "updated_at": begin + MESSAGES}
    return {"id": f"owl-{number}", "title": chat["title"], "chat": chat, **times}


@contextlib.contextmanager
def run_installation(folder: Path) -> Iterator[str]:
    """Run an installation and yield the link that signs its administrator in."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    environment = {**os.environ, "CHATCORE_DATA_DIR": str(folder), "PYTHONUNBUFFERED": "1"}
    server = subprocess.Popen(
        [*COMMAND, "serve", "--no-local-model", "--port", str(port), "--web", "1"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert server.stdout
        link = next(match[0] for line in server.stdout if (match := re.search(r"http\S+", line)))
        yield link
    finally:
        server.terminate()
        server.wait(timeout=60)


class Walk:
    """The walk of one person; each step is printed with the seconds that it took."""

    def __init__(self, page: Page, shots: Path | None) -> None:
        self.page = page
        self.shots = shots
        self.is_slow = False

    @contextlib.contextmanager
    def step(self, name: str, limit: float) -> Iterator[None]:
        begin = time.monotonic()
        yield
        seconds = time.monotonic() - begin
        self.is_slow |= seconds > limit
        print(f"{name:48} {seconds:7.1f} s", flush=True)
        if self.shots:
            self.page.screenshot(path=self.shots / f"{re.sub('[^a-z0-9]+', '-', name.lower())}.png")

    def import_file(self, name: str, content: bytes, told: str) -> None:
        self.page.goto(self.page.url.split("/imports")[0])
        kind = "application/zip" if name.endswith(".zip") else "application/json"
        self.page.locator("#import-file").set_input_files(
            {"name": name, "mimeType": kind, "buffer": content}
        )
        expect(self.page.get_by_text(told).first).to_be_visible(timeout=MAX_SECONDS * 1000)


def walk(page: Page, link: str, shots: Path | None, counts: list[int]) -> tuple[bytes, bool]:
    """Move in; return the archive of everything, and whether a step took too long."""
    person = Walk(page, shots)
    with person.step("sign in", 30):
        page.goto(link)
        expect(page.get_by_label("Your message")).to_be_visible()
    newest = counts[0] - 1
    chatgpt = build_chatgpt(counts[0])
    with person.step(f"import {counts[0]} chats of ChatGPT", MAX_SECONDS):
        person.import_file("export.zip", chatgpt, f"{counts[0]:,} came in, 0 in part, 0 not")
    with person.step(f"import {counts[1]} chats of Open WebUI", MAX_SECONDS):
        told = f"{counts[1]:,} came in, 0 in part, 0 not"
        person.import_file("chat-export.json", build_openwebui(counts[1]), told)
    with person.step("import ChatGPT's again", MAX_SECONDS):
        person.import_file("export.zip", chatgpt, f"{counts[0]:,} were here already")
    with person.step("open the newest chat", 10):
        page.get_by_role("link", name=f"Heron {newest}", exact=True).click()
        expect(page.locator(".user .words").first).to_contain_text(f"{newest}.0")
        page.wait_for_load_state()
    for name, words in (("a rare word", "Owl 7"), ("a word of every message", "heron water")):
        with person.step(f"search {name}", MAX_SEARCH_SECONDS):
            page.keyboard.press("Control+k")
            page.keyboard.type(words)
            found = page.get_by_role("option").filter(has_text=words.split()[0])
            expect(found.first).to_be_visible(timeout=60_000)
        page.keyboard.press("Escape")
    with person.step("export everything", MAX_SECONDS):
        archive = page.context.request.get(
            f"{link.split('/', 3)[0]}//{link.split('/')[2]}/api/v1/export",
            timeout=MAX_SECONDS * 1000,
        ).body()
    return archive, person.is_slow


def import_elsewhere(archive: bytes, folder: Path) -> str:
    """Bring the archive into an empty installation by the command; return what it says."""
    path = folder / "everything.zip"
    path.write_bytes(archive)
    environment = {**os.environ, "CHATCORE_DATA_DIR": str(folder / "data")}
    for command in (["prepare"], ["sign_in_link"]):
        subprocess.run([*COMMAND, *command], env=environment, check=True, capture_output=True)
    done = subprocess.run(
        [*COMMAND, "import", str(path)], env=environment, check=True, capture_output=True, text=True
    )
    return done.stdout.strip().splitlines()[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shots", type=Path, help="a folder for screenshots")
    parser.add_argument("--chats", type=int, nargs=2, default=[1_500, 300])
    options = parser.parse_args()
    shots, counts = options.shots, options.chats
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        with run_installation(folder / "first") as link:
            browser = playwright.chromium.launch(executable_path=os.environ.get("CHATCORE_BROWSER"))
            archive, is_slow = walk(browser.new_page(), link, shots, counts)
        begin = time.monotonic()
        told = import_elsewhere(archive, folder)
        print(f"{'import everything elsewhere':48} {time.monotonic() - begin:7.1f} s")
        print(f"{len(archive) / 1e6:.1f} MB: {told}")
    return int(is_slow or not told.startswith(f"{sum(counts):,} came in, 0 in part, 0 not"))


if __name__ == "__main__":
    sys.exit(main())
