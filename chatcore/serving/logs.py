"""The format of log lines: key=value pairs, written by structlog."""

import logging

import structlog


def build_line_formatter() -> logging.Formatter:
    """Return a formatter for records of the standard library and of structlog alike.

    A line has the time, the level, the event and then the other pairs.
    """
    common_processors: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*common_processors, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    renderer = structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "event"], drop_missing=True
    )
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=common_processors,
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, renderer],
    )
