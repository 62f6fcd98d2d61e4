"""Decide what to advise after a failure, by what the provider said of it."""

import re
from collections.abc import Mapping

_QUOTA = re.compile(r"insufficient.?quota|quota|billing|credit|payment", re.IGNORECASE)
_CONTENT = re.compile(r"content.?(policy|filter|management)|safety|moderation|flagged", re.I)
_UNKNOWN = re.compile(r"not.?found|not exist|unknown|no access|no such", re.IGNORECASE)
_KINDS = {
    "provider_auth": "key",
    "provider_overloaded": "wait",
    "provider_rate_limited": "wait",
    "context_overflow": "length",
    "context_budget_exceeded": "length",
    "tool_rounds_exceeded": "rounds",
}


def choose_advice(error: Mapping[str, object] | None) -> str:
    """Return the kind of advice that fits a turn's error; "again" where nothing else is known."""
    error = error or {}
    kind, detail = str(error.get("type", "")), str(error.get("detail", ""))
    if kind in ("provider_rate_limited", "provider_rejected") and _QUOTA.search(detail):
        return "quota"
    if kind == "provider_rejected" and _CONTENT.search(detail):
        return "content"
    if kind in ("provider_rejected", "provider_auth") and _is_about_model(detail):
        return "model"
    return _KINDS.get(kind, "again")


def _is_about_model(detail: str) -> bool:
    return "model" in detail.lower() and _UNKNOWN.search(detail) is not None
