"""How a log line looks: key=value pairs through structlog, in one process-wide format."""

import logging

import structlog


def build_line_formatter() -> logging.Formatter:
    """Format standard-library and structlog records alike: time, level, event, key=value."""
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
