"""The admin site: its name, who signs in where, and what its sidebar lists."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any

from django.apps import apps
from django.contrib.admin import AdminSite
from django.http import HttpRequest, HttpResponseRedirect
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from chatcore.admin import overview
from chatcore.extension import get_extensions
from chatcore.models.session import are_titles_hidden

CONTENT_PERMISSION = "chatcore.view_content"

# Alpine, which moves unfold's menus, evaluates the expressions of its own templates. Only pages of
# the admin may; texts of people never become templates. Scripts come from this server, as ever.
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

# Subjects in their order, with the icons of their models, as chatcore/_icons.html and
# admin/icons.html name them. An app alone stands for its other models, which have none.
# A page may name its subject and icon itself (ChatcoreAdmin.sidebar).
TITLES: dict[str, object] = {
    "conversations": _("Conversations"),
    "compaction": _("Compaction"),
    "models": _("Models and providers"),
    "people": _("People"),
    "costs": _("Costs"),
}
SIDEBAR: dict[str, dict[str, str]] = {
    "conversations": {
        "chatcore.session": "chat",
        "chatcore.project": "folder",
        "chatcore.message": "quote",
        "chatcore.turn": "again",
        "chatcore.contextrevision": "clock",
        "chatcore.toolapproval": "check",
    },
    "compaction": {
        "compaction.compactionrun": "layers",
        "compaction.compactionpolicy": "sliders",
        "compaction": "",
    },
    "models": {
        "models_registry.provider": "server",
        "models_registry.aimodel": "chip",
        "chatcore.mcpserver": "tool",
    },
    "people": {
        "auth.user": "person",
        "auth.group": "people",
        "account": "",
        "socialaccount": "",
        "mfa": "",
        "knox": "",
    },
    "costs": {},
}
OTHER_SUBJECT = _("Plumbing")


class ChatcoreAdminSite(UnfoldAdminSite):
    """The site of all admin pages, those of Django and of packages too."""

    index_title = _("Overview")

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, object]]:
        """Return the groups of links to the pages that this person may open, by subject."""
        pages = {
            f"{app['app_label']}.{model['object_name'].lower()}": model
            for app in self.get_app_list(request)
            for model in app["models"]
        }
        overview = {"name": _("Overview"), "admin_url": reverse("admin:index")}
        first_link = _build_link(overview, "chart", request.path)
        first_link["active"] = request.path == overview["admin_url"]
        groups: list[dict[str, object]] = [{"items": [first_link]}]
        for subject, title in TITLES.items():
            items = [
                _build_link(pages.pop(name), icon, request.path)
                for label, icon in self._list_icons(subject)
                for name in _select_names(label, pages)
            ]
            groups.append({"title": title, "items": items, "separator": True})
        rest = [_build_link(page, "", request.path) for page in pages.values()]
        groups.append(
            {"title": OTHER_SUBJECT, "items": rest, "separator": True, "collapsible": True}
        )
        return [group for group in groups if group["items"]]

    def _list_icons(self, subject: str) -> list[tuple[str, str]]:
        """Return the labels of a subject's models with their icons; apps alone come last."""
        own_pages = list_own_pages(self, subject)
        own_icons = [(page.opts.label_lower, page.sidebar[1]) for page in own_pages]
        icons = [*SIDEBAR[subject].items(), *own_icons]
        return sorted(icons, key=lambda entry: "." not in entry[0])

    def index(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> TemplateResponse:
        """Show what happens today, in the cards that this person has rights for."""
        lists = [overview.list_cards, *(each.list_cards for each in get_extensions())]
        cards = [card for list_cards in lists for card in list_cards(request)]
        return super().index(request, {"cards": cards, **(extra_context or {})})

    def login(self, request: HttpRequest, extra_context: object = None) -> object:
        """Show the pages' own sign-in, which asks for second factors and knows other ways in."""
        if request.user.is_authenticated and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        from chatcore.web.account import SignInView  # the pages need models, this module does not

        page = SignInView.as_view(redirect_authenticated_user=False, next_page="admin:index")
        return page(request)

    def admin_view(self, view: object, cacheable: bool = False) -> object:
        """Make each page wholly while titles are hidden from those who may not see contents.

        These pages alone have a policy that lets Alpine work.
        """
        show_page = super().admin_view(view, cacheable)

        @wraps(show_page)
        def show(request: HttpRequest, *args: object, **kwargs: object) -> HttpResponseBase:
            with _hide_titles(request):
                response: HttpResponseBase = show_page(request, *args, **kwargs)
                if isinstance(response, TemplateResponse):
                    response = response.render()
            response.headers.setdefault("Content-Security-Policy", CONTENT_SECURITY_POLICY)
            return response

        return show


def list_own_pages(site: AdminSite, subject: str) -> list[Any]:
    """Return the pages that name this subject themselves."""
    models = [model for model in apps.get_models() if site.is_registered(model)]
    pages = [site.get_model_admin(model) for model in models]
    return [page for page in pages if getattr(page, "sidebar", ("",))[0] == subject]


@contextmanager
def _hide_titles(request: HttpRequest) -> Iterator[None]:
    """Name sessions by their numbers inside the block, if this person may not see contents."""
    marker = are_titles_hidden.set(not request.user.has_perm(CONTENT_PERMISSION))
    try:
        yield
    finally:
        are_titles_hidden.reset(marker)


def _select_names(label: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if label in (name, name.split(".")[0])]


def _build_link(page: Mapping[str, Any], icon: str, path: str) -> dict[str, object]:
    from chatcore.web.templatetags import chat as icons  # which needs models, this module does not

    address = page["admin_url"]
    return {
        "title": page["name"],
        "icon": icons.icon(icon),  # no name keeps the place, and draws nothing
        "link": address,
        "active": bool(address) and path.startswith(address),
        "has_permission": bool(address),
    }
