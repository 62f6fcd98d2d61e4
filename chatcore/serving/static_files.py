"""Hash and compress static files: for `chatcore collectstatic`, and by itself for `serve`."""

import hashlib
import shutil
from pathlib import Path

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.contrib.staticfiles.management.commands import collectstatic
from django.core.management import call_command
from whitenoise.storage import CompressedManifestStaticFilesStorage

from chatcore.serving.preparation import hold_start_lock

IGNORED = ["*.map"]  # of packages' scripts, for their developers; a third of all bytes


class HashedFiles(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage; a file that a package's CSS names and does not bring is no error."""

    def hashed_name(self, name: str, content: object = None, filename: str | None = None) -> str:
        """Return the name with the hash, or the name itself if there is no such file."""
        try:
            hashed_name: str = super().hashed_name(name, content, filename)
        except ValueError:
            return name
        return hashed_name


def provide_folder() -> str:
    """Return the folder of CHATCORE_STATIC_DIR, or else one in the data folder, filled now.

    Filling takes some seconds, once for each state of the packages. With CHATCORE_DEBUG there is
    none, so that a change of a file is seen at once.
    """
    if settings.STATIC_DIR or settings.DEBUG:
        return str(settings.STATIC_DIR)
    folder = Path(settings.STATIC_ROOT, _describe_files())
    with hold_start_lock():
        if not folder.exists():
            for older in settings.STATIC_ROOT.iterdir():
                shutil.rmtree(older)
            unfinished = folder.with_suffix(".unfinished")
            command = collectstatic.Command()
            command.storage = HashedFiles(location=unfinished)
            call_command(command, interactive=False, verbosity=0, ignore_patterns=IGNORED)
            unfinished.rename(folder)
    return str(folder)


def _describe_files() -> str:
    """Return a hash of the names, sizes and times of all static files."""
    digest = hashlib.sha256()
    for finder in get_finders():
        for name, storage in finder.list(IGNORED):
            status = Path(storage.path(name)).stat()
            digest.update(f"{name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]
