"""The sidebar of the admin: pages by subject, what only the program needs last.

It stands beside chatcore/admin_site.py, outside the package chatcore/admin/, for the same reason.
"""

from collections.abc import Iterable
from typing import Any

from django.urls import reverse
from django.utils.translation import gettext_lazy as _

# Subjects in their order, with models or, for all the others of an app, the app alone.
SUBJECTS: list[tuple[Any, tuple[str, ...]]] = [
    (
        _("Conversations"),
        (
            "chatcore.session",
            "chatcore.project",
            "chatcore.message",
            "chatcore.turn",
            "chatcore.contextrevision",
            "chatcore.toolapproval",
            "chatcore.storedresponse",
        ),
    ),
    (_("Compaction"), ("compaction.compactionrun", "compaction.compactionpolicy", "compaction")),
    (
        _("Models and providers"),
        ("models_registry.provider", "models_registry.aimodel", "chatcore.mcpserver"),
    ),
    (
        _("People"),
        (
            "auth.user",
            "auth.group",
            "chatcore.grouprights",
            "chatcore.invitation",
            "chatcore.hold",
            "chatcore.auditentry",
            "account",
            "socialaccount",
            "mfa",
            "knox",
        ),
    ),
    (_("Costs"), ("chatcore.budget", "chatcore.usagesum")),
]
OTHER_SUBJECT = _("Plumbing")
ICONS = {
    "chatcore.session": "chat",
    "chatcore.project": "folder",
    "chatcore.message": "article",
    "chatcore.turn": "sync_alt",
    "chatcore.contextrevision": "history",
    "chatcore.toolapproval": "fact_check",
    "chatcore.storedresponse": "reply",
    "compaction.compactionrun": "compress",
    "compaction.compactionpolicy": "tune",
    "models_registry.provider": "dns",
    "models_registry.aimodel": "neurology",
    "chatcore.mcpserver": "build",
    "auth.user": "person",
    "auth.group": "group",
    "chatcore.invitation": "mail",
    "chatcore.grouprights": "rule",
    "chatcore.hold": "gavel",
    "chatcore.auditentry": "policy",
    "chatcore.budget": "savings",
    "chatcore.usagesum": "payments",
}


def build_sidebar(app_list: Iterable[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """Return the groups of links for unfold, of the pages that somebody may open.

    `app_list` is what the site lists for that person; `path` is that of the request.
    """
    pages = {
        f"{app['app_label']}.{model['object_name'].lower()}": model
        for app in app_list
        for model in app["models"]
    }
    overview = reverse("admin:index")
    first_link = {
        "title": _("Overview"),
        "icon": "monitoring",
        "link": overview,
        "active": path == overview,
        "has_permission": True,
    }
    groups: list[dict[str, Any]] = [{"items": [first_link]}]
    for title, labels in SUBJECTS:
        names = [name for label in labels for name in _select_names(label, list(pages))]
        items = [_build_link(name, pages.pop(name), path) for name in dict.fromkeys(names)]
        groups.append({"title": title, "items": items, "separator": True})
    rest = [_build_link(name, page, path) for name, page in pages.items()]
    groups.append({"title": OTHER_SUBJECT, "items": rest, "separator": True, "collapsible": True})
    return [group for group in groups if group["items"]]


def _select_names(label: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if label in (name, name.split(".")[0])]


def _build_link(name: str, page: dict[str, Any], path: str) -> dict[str, Any]:
    link = page["admin_url"]
    return {
        "title": page["name"],
        "icon": ICONS.get(name, "chevron_right"),
        "link": link,
        "active": bool(link) and path.startswith(link),
        "has_permission": bool(link),
    }
