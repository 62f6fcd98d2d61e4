"""Which of the apps that can be absent are installed: CHATCORE_WITHOUT leaves some out."""

from typing import TypeVar

from chatcore.base.environment import read_names
from chatcore.extension import OPTIONAL_APPS, OptionalApp

T = TypeVar("T")


def read_installed_apps() -> list[OptionalApp]:
    """Return the apps that CHATCORE_WITHOUT does not leave out, for the settings."""
    absent_names = read_names("CHATCORE_WITHOUT", [app.name for app in OPTIONAL_APPS])
    return [app for app in OPTIONAL_APPS if app.name not in absent_names]


def get_app_setting(name: str, default: T) -> T:
    """Return what an installed app puts in the place of a setting, or the core's own."""
    values = [app.settings[name] for app in read_installed_apps() if name in app.settings]
    return values[0] if values else default
