"""Which of the apps that can be absent are installed: CHATCORE_WITHOUT leaves some out.

So does a small installation, which lacks the packages of an app.
"""

from typing import TypeVar

from chatcore.base.environment import read_names
from chatcore.base.extras import has_extra
from chatcore.extension import OPTIONAL_APPS, OptionalApp

T = TypeVar("T")


def read_installed_apps() -> list[OptionalApp]:
    """Return the apps that are not left out and whose packages are there, for the settings."""
    return [app for app in _list_wanted_apps() if not app.needs or has_extra(app.needs)]


def describe_missing_apps() -> str:
    """Return a sentence about the apps whose packages are not there; empty if none is missing."""
    missing_apps = [app for app in _list_wanted_apps() if app.needs and not has_extra(app.needs)]
    if not missing_apps:
        return ""
    extras = ",".join(sorted({app.needs for app in missing_apps}))
    names = ", ".join(app.name for app in missing_apps)
    return f"Without their packages, these apps are left out: {names} (chatcore[{extras}])."


def read_absent_names() -> list[str]:
    """Return the names of the apps that CHATCORE_WITHOUT leaves out.

    Raises ImproperlyConfigured if there is no app of a name.
    """
    return read_names("CHATCORE_WITHOUT", [app.name for app in OPTIONAL_APPS])


def _list_wanted_apps() -> list[OptionalApp]:
    absent_names = read_absent_names()
    return [app for app in OPTIONAL_APPS if app.name not in absent_names]


def get_app_setting(name: str, default: T) -> T:
    """Return what an installed app puts in the place of a setting, or the core's own."""
    values = [app.settings[name] for app in read_installed_apps() if name in app.settings]
    return values[0] if values else default
