"""Which of the apps that can be absent are installed: CHATCORE_WITHOUT leaves some out.

So does a small installation, which lacks the packages of an app.
"""

from typing import TypeVar

from chatcore.base.environment import read_names
from chatcore.base.extras import has_extra, log_missing
from chatcore.extension import OPTIONAL_APPS, OptionalApp

T = TypeVar("T")


def read_installed_apps() -> list[OptionalApp]:
    """Return the apps that are not left out and whose packages are there, for the settings."""
    absent_names = read_names("CHATCORE_WITHOUT", [app.name for app in OPTIONAL_APPS])
    wanted_apps = [app for app in OPTIONAL_APPS if app.name not in absent_names]
    return [app for app in wanted_apps if not app.needs or _has_packages(app)]


def _has_packages(app: OptionalApp) -> bool:
    is_there = has_extra(app.needs)
    if not is_there:
        log_missing(app.needs, f"The app {app.name} is left out")
    return is_there


def get_app_setting(name: str, default: T) -> T:
    """Return what an installed app puts in the place of a setting, or the core's own."""
    values = [app.settings[name] for app in read_installed_apps() if name in app.settings]
    return values[0] if values else default
