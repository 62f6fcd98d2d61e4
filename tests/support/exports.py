"""The made-up exports of tests/exports, and how they are sent."""

import base64
import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[1] / "exports"


def list_exports() -> list[str]:
    """Return the names of the made-up exports."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def load_export(name: str) -> dict[str, Any]:
    """Return an export with what a reader should find in it."""
    export: dict[str, Any] = json.loads((FOLDER / f"{name}.json").read_text())
    return export


def list_files(export: Mapping[str, Any]) -> list[tuple[str, bytes]]:
    """Return the names and contents of the files of an export."""
    return [(name, _write(content)) for name, content in export["files"].items()]


def pack(files: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a ZIP file of them."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files:
            archive.writestr(name, content)
    return target.getvalue()


def _write(content: Mapping[str, Any]) -> bytes:
    [(form, value)] = content.items()
    if form == "json":
        return json.dumps(value, ensure_ascii=False).encode()
    if form == "lines":
        return "\n".join(json.dumps(line, ensure_ascii=False) for line in value).encode()
    return base64.b64decode(value) if form == "base64" else str(value).encode()
