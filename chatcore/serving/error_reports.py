"""Report errors to Sentry, or what speaks its protocol, where CHATCORE_SENTRY_DSN names it.

A report has what the log line has: the error, where it was raised, and ids. It has no request, no
local variable and no earlier line, all of which could hold contents or keys.
"""

import logging
from typing import Any

import structlog

from chatcore.serving.logs import LINK_TOKEN


def start_error_reports(dsn: str) -> None:
    """Report each line of the level ERROR and above from now on; without a DSN, do nothing."""
    if not dsn:
        return
    import sentry_sdk
    from sentry_sdk.integrations.logging import LoggingIntegration

    sentry_sdk.init(
        dsn=dsn,
        default_integrations=False,
        auto_enabling_integrations=False,
        integrations=[LoggingIntegration(level=None, event_level=logging.ERROR)],
        include_local_variables=False,
        send_default_pii=False,
        max_breadcrumbs=0,
        before_send=_prepare_report,
    )


def _prepare_report(event: Any, hint: object) -> Any:
    """Add the ids that the log line has, and cut out what signs somebody in."""
    for name in ("request", "extra", "breadcrumbs", "user"):
        event.pop(name, None)
    ids = structlog.contextvars.get_contextvars()
    event["tags"] = {name: str(value) for name, value in ids.items() if value is not None}
    message = event.get("logentry", {})
    for name in ("message", "formatted"):
        if isinstance(message.get(name), str):
            message[name] = LINK_TOKEN.sub(r"\1…", message[name])
    if "params" in message:
        message["params"] = []
    return event
