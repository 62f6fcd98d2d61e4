"""The settings of where whole outputs of tools, and uploaded files, are kept."""

import importlib.util
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from chatcore.base.environment import read_text


def build_folder_storage(folder: Path) -> dict[str, Any]:
    """Return the storage in a folder, for STORAGES. No address leads to the folder."""
    return {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {
            "location": folder,
            "file_permissions_mode": 0o600,
            "directory_permissions_mode": 0o700,
        },
    }


def read_object_storage(prefix: str) -> dict[str, object] | None:
    """Return the storage in the bucket that `prefix`_BUCKET names, for STORAGES; None without one.

    The extra `storage` must be there. A storage that does not answer is given up after some
    seconds, because people wait.
    """
    bucket = read_text(f"{prefix}_BUCKET")
    if not bucket:
        return None
    if importlib.util.find_spec("storages") is None or importlib.util.find_spec("boto3") is None:
        raise ImproperlyConfigured(
            f"{prefix}_BUCKET needs packages: pip install 'chatcore[storage]'."
        )
    from botocore.config import Config  # only here, because it takes a while

    endpoint = read_text(f"{prefix}_ENDPOINT")
    client_config = Config(
        connect_timeout=5,
        read_timeout=20,
        retries={"max_attempts": 2, "mode": "standard"},
        s3={"addressing_style": "path" if endpoint else "auto"},
    )
    return {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {
            "bucket_name": bucket,
            "endpoint_url": endpoint or None,
            "region_name": read_text(f"{prefix}_REGION") or None,
            "location": read_text(f"{prefix}_PREFIX"),
            "client_config": client_config,
            "file_overwrite": True,  # each name is used once, so nobody need look for it first
            "max_memory_size": 1024 * 1024,
        },
    }
