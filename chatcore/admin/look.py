"""How the admin looks: django-unfold in the colors of the pages. The settings import it."""

from django.templatetags.static import static
from django.urls import get_script_prefix

__all__ = ["UNFOLD"]

# The settings of unfold. The steps of `base` are the grey tones of chatcore/css/tokens.css.
UNFOLD: dict[str, object] = {
    "SITE_TITLE": "Chatcore admin",
    "SITE_HEADER": "Chatcore",
    "SITE_SUBHEADER": None,
    "SITE_URL": lambda request: get_script_prefix(),
    "SITE_ICON": lambda request: static("chatcore/mark.svg"),
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda request: static("chatcore/mark.svg"),
        }
    ],
    "SHOW_HISTORY": True,
    "SHOW_BACK_BUTTON": True,
    "BORDER_RADIUS": "8px",
    "STYLES": [
        lambda request: static("chatcore/css/tokens.css"),
        lambda request: static("chatcore/css/admin.css"),
    ],
    "SCRIPTS": [
        lambda request: static("chatcore/js/admin_theme.js"),
        lambda request: static("chatcore/js/admin_regions.js"),
    ],
    "COLORS": {
        "base": {
            "50": "#f6f6f3",
            "100": "#ecece7",
            "200": "#e0dfd8",
            "300": "#d2d1c9",
            "400": "#a6a49c",
            "500": "#6c6b63",
            "600": "#57564f",
            "700": "#42423e",
            "800": "#2f2f2c",
            "900": "#191918",
            "950": "#0f0f0e",
        },
        "primary": {
            "50": "#e9f2ef",
            "100": "#d5e8e2",
            "200": "#b4d8cd",
            "300": "#94d6c4",
            "400": "#7cc6b2",
            "500": "#6fbba7",
            "600": "#2c6e5f",
            "700": "#235a4d",
            "800": "#1d4a40",
            "900": "#1e2d29",
            "950": "#10211d",
        },
        "font": {
            "subtle-light": "#64635c",
            "subtle-dark": "#a6a49c",
            "default-light": "#42423e",
            "default-dark": "#d2d1c9",
            "important-light": "#1f1f1c",
            "important-dark": "#eae8e3",
        },
    },
}
