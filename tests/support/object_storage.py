"""Object storage on loopback, in S3's wire format, that can go away and come back."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import boto3
from botocore.config import Config
from moto.server import ThreadedMotoServer

from chatcore.files.output_store import OWNER_FILE

BUCKET = "chatcore-files"
KEYS = {"access_key": "a-key", "secret_key": "a-secret"}


class ObjectStorage:
    """A running server with one bucket."""

    def __init__(self) -> None:
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.address = f"http://{host}:{port}"
        self.client: Any = boto3.client(
            "s3",
            endpoint_url=self.address,
            region_name="us-east-1",
            aws_access_key_id=KEYS["access_key"],
            aws_secret_access_key=KEYS["secret_key"],
        )
        self.client.create_bucket(Bucket=BUCKET)

    def list_objects(self) -> dict[str, bytes]:
        """Return what is stored."""
        rows = self.client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        names = [row["Key"] for row in rows if row["Key"] != OWNER_FILE]
        return {name: self._read(name) for name in names}

    def empty(self) -> None:
        """Delete all objects."""
        for name in [*self.list_objects(), OWNER_FILE]:
            self.client.delete_object(Bucket=BUCKET, Key=name)

    def stop(self) -> None:
        """End the server."""
        self._server.stop()

    def build_setting(self, address: str = "") -> dict[str, Any]:
        """Return what STORAGES says of it; another address is one where nobody answers."""
        return {
            "BACKEND": "storages.backends.s3.S3Storage",
            "OPTIONS": {
                **KEYS,
                "bucket_name": BUCKET,
                "endpoint_url": address or self.address,
                "region_name": "us-east-1",
                "client_config": Config(
                    connect_timeout=2,
                    retries={"max_attempts": 1},
                    s3={"addressing_style": "path"},
                ),
            },
        }

    def _read(self, name: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=BUCKET, Key=name)["Body"].read()
        return content


@contextmanager
def run_object_storage() -> Iterator[ObjectStorage]:
    """Run object storage."""
    storage = ObjectStorage()
    try:
        yield storage
    finally:
        storage.stop()
