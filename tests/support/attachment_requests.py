"""REST requests that upload files and send them with messages."""

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from rest_framework.test import APIClient

from chatcore.models import Session

MB = 1024 * 1024


def upload(
    api: APIClient, session: Session, data: bytes, name: str = "notes.txt", **more: Any
) -> Any:
    form = {"file": SimpleUploadedFile("x", data), **more}
    form["file"].name = name
    return api.post(f"/api/v1/sessions/{session.pk}/attachments", form, format="multipart")


def say(api: APIClient, session: Session, attachments: list[Any], content: str = "Look.") -> Any:
    return api.post(
        f"/api/v1/sessions/{session.pk}/messages", {"content": content, "attachments": attachments}
    )
