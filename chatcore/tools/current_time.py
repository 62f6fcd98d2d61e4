"""The tool that tells the date and the time, anywhere."""

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone

from chatcore.tools.base import BuiltInTool, ToolError


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Now, in the asked time zone: ISO 8601, the zone and the weekday."""
    name = arguments["timezone"]
    try:
        now = timezone.now().astimezone(ZoneInfo(name))
    except (
        KeyError,
        ValueError,
        OSError,
    ):  # a folder of the time zone database ("Europe") is an OSError
        raise ToolError(
            f"{name!r} is not an IANA time zone. Write one like Europe/Berlin, America/New_York or UTC."
        ) from None
    return f"{now.isoformat(timespec='seconds')} {name}, {now:%A}"


TOOL = BuiltInTool(
    name="current_time",
    description="Tells the current date, time and weekday in a time zone.",
    parameters={
        "type": "object",
        "properties": {
            "timezone": {
                "type": "string",
                "description": "IANA time zone, for example Europe/Berlin.",
                "default": "UTC",
                "minLength": 1,
                "maxLength": 64,
            }
        },
        "additionalProperties": False,
    },
    run=run,
)
