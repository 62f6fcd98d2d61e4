"""Hash and compress static files, for `chatcore collectstatic`."""

from typing import Any

from whitenoise.storage import CompressedManifestStaticFilesStorage


class HashedFiles(CompressedManifestStaticFilesStorage):
    """WhiteNoise's storage; a file that a package's CSS names and does not bring is no error."""

    def hashed_name(self, name: str, content: Any = None, filename: str | None = None) -> str:
        """Return the name with the hash, or the name itself if there is no such file."""
        try:
            hashed_name: str = super().hashed_name(name, content, filename)
        except ValueError:
            return name
        return hashed_name
