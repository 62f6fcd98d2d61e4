"""Which routes of the APIs the soak has not sent a request to."""

import json
import re
from collections.abc import Collection
from pathlib import Path

from tests.support.route_matrix import MATRIX

# It revokes the token that the client itself uses.
LEFT_OUT = {("DELETE", "/api/v1/tokens")}
ROOT = Path(__file__).resolve().parents[2]


def list_missing_routes(sent: Collection[tuple[str, str]]) -> list[str]:
    """Return the routes of docs/openapi.json and of /v1 that no request was for."""
    document = json.loads((ROOT / "docs" / "openapi.json").read_text())
    routes = {
        (method.upper(), re.sub(r"\{[^}]*\}", "[^/]+", path))
        for path, methods in document["paths"].items()
        for method in methods
    }
    routes |= {
        (method, "/" + re.sub(r"<[^>]*>|\(\?P<\w+>[^)]*\)", "[^/]+(/[^/]+)?", path))
        for path, methods in MATRIX.items()
        for method in methods
        if path.startswith("v1/")
    }
    return sorted(
        f"{method} {pattern}"
        for method, pattern in routes - LEFT_OUT
        if not any(m == method and re.fullmatch(pattern, path) for m, path in sent)
    )
