"""The format of log lines: key=value pairs or JSON, written by structlog.

A line has the time, the level, the event and then ids: `request`, `user`, `session` and `turn`
where they are known. It has no contents, no key and no sign-in link.
"""

import logging
import re
from collections.abc import MutableMapping
from typing import Any

import structlog

# Statuses of a provider that failed, of what is away, stopping or overloaded, and of a full disk.
REFUSALS = (502, 503, 504, 507, 529)
IDS = ("request", "user", "session", "turn")
# What stands in the path of a link that signs somebody in, lets somebody join, or shows a chat.
LINK_TOKEN = re.compile(
    r"(/(?:s|login/once|invitation|account/email|account/password/reset)/)[^/\s\"']+"
)


def build_settings(form: str, level: str) -> dict[str, Any]:
    """Return Django's setting LOGGING: lines of this form, from this level on, to stderr."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "probes": {"()": "django.utils.log.CallbackFilter", "callback": is_no_probe},
            "refusals": {"()": "django.utils.log.CallbackFilter", "callback": lower_refusal},
        },
        "formatters": {"line": {"()": "chatcore.serving.logs.build_line_formatter", "form": form}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
        "root": {
            "handlers": ["stderr"],
            "level": level,
        },
        "loggers": {
            "httpx2": {"level": "WARNING"},
            "mcp": {"level": "WARNING"},
            # What a tool server of a user answers is raised too, and shown to that user.
            "mcp.client": {"level": "CRITICAL"},
            "django.request": {"level": "ERROR", "filters": ["probes", "refusals"]},
            # chatcore.web.refused_forms says it with the names of this project's settings.
            "django.security.DisallowedHost": {"level": "CRITICAL"},
        },
    }


def is_no_probe(record: logging.LogRecord) -> bool:
    """Return False for a probe: Django would log each one of a process that is not ready."""
    # Imported here, because the settings import this module.
    from chatcore.serving.probes import load_probes

    path = getattr(getattr(record, "request", None), "path_info", "")
    return path.removesuffix("/") not in load_probes()


def lower_refusal(record: logging.LogRecord) -> bool:
    """Make a warning of a response that says what is away, stopping or full.

    Django logs each status from 500 on as an error, and error reports would be about providers and
    restarts.
    """
    if getattr(record, "status_code", None) in REFUSALS:
        record.levelno, record.levelname = logging.WARNING, "WARNING"
    return True


def build_line_formatter(form: str = "logfmt") -> logging.Formatter:
    """Return a formatter for records of the standard library and of structlog alike.

    `form` is `logfmt` or `json`.
    """
    common_processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        _clean_line,
    ]
    structlog.configure(
        processors=[*common_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer: structlog.typing.Processor = structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "event"], drop_missing=True
    )
    if form == "json":
        renderer = structlog.processors.JSONRenderer(ensure_ascii=False)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[structlog.stdlib.add_logger_name, *common_processors],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )


def _clean_line(
    logger: object, method_name: str, line: MutableMapping[str, object]
) -> dict[str, object]:
    """Leave out ids that are not known, and what signs somebody in."""
    return {
        name: LINK_TOKEN.sub(r"\1…", value) if isinstance(value, str) else value
        for name, value in line.items()
        if value is not None or name not in IDS
    }
