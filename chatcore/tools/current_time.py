"""The tool `current_time`: return the date and the time in a time zone."""

from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chatcore.tools.base import BuiltInTool, ToolError


def run(arguments: dict[str, Any], session_id: UUID) -> str:
    """Return the current time in ISO 8601, the time zone and the weekday."""
    name = arguments["timezone"]
    try:
        now = timezone.now().astimezone(ZoneInfo(name))
    # A name that is a folder of the time zone database, such as "Europe", raises OSError.
    except (KeyError, ValueError, OSError):
        raise ToolError(
            f"{name!r} is not an IANA time zone."
            " Write one like Europe/Berlin, America/New_York or UTC."
        ) from None
    return f"{now.isoformat(timespec='seconds')} {name}, {now:%A}"


TOOL = BuiltInTool(
    name="current_time",
    title=_("Date and time"),
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
