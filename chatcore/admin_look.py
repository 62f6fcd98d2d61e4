"""How the admin looks: django-unfold in the colours of the pages, and its classes for each page.

The site mixes unfold's classes into all pages, those of packages too. No page imports them, so a
project with an admin site of its own shows the pages of `compaction` in its own look.

It stands beside chatcore/admin_site.py, outside the package chatcore/admin/, for the same reason.
"""

from typing import TYPE_CHECKING, Any

from django.contrib.admin import ModelAdmin, StackedInline
from django.templatetags.static import static
from django.urls import get_script_prefix

if TYPE_CHECKING:  # it is mixed into inlines, whose method it calls
    from django.contrib.admin.options import InlineModelAdmin

    _Inline = InlineModelAdmin[Any, Any]
else:
    _Inline = object

__all__ = ["ADMIN_OVERVIEW", "UNFOLD"]  # the settings

# Alpine, which moves unfold's menus, evaluates the expressions of its own templates. Only pages of
# the admin may; texts of people never become templates. Scripts come from this server, as ever.
ADMIN_CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

# The functions that list the cards of the first page (chatcore/admin/overview.py).
ADMIN_OVERVIEW = ["chatcore.admin.overview.list_cards", "compaction.admin.overview.list_cards"]

# The settings of unfold. The steps of `base` are the grey tones of chatcore/css/tokens.css.
UNFOLD: dict[str, Any] = {
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


def build_page_class(page_class: type[ModelAdmin], *bases: type[ModelAdmin]) -> type[ModelAdmin]:
    """Return the class of a page with our bases and unfold's, before those of Django.

    What the page does itself comes first, and then calls ours.
    """
    from unfold import admin, forms  # they need models, which are not loaded before

    names: dict[str, Any] = {
        "__module__": page_class.__module__,
        "inlines": [_build_inline_class(inline) for inline in page_class.inlines],
    }
    if hasattr(page_class, "change_password_form"):  # the page of users
        names |= {
            "form": forms.UserChangeForm,
            "add_form": forms.UserCreationForm,
            "change_password_form": forms.AdminPasswordChangeForm,
        }
    first = () if page_class is ModelAdmin else (page_class,)
    return type(page_class.__name__, (*first, *bases, admin.ModelAdmin), names)


def _build_inline_class(inline: Any) -> Any:
    from unfold import admin

    base = admin.StackedInline if issubclass(inline, StackedInline) else admin.TabularInline
    # Django's classes name their template themselves, and would come first.
    names = {"__module__": inline.__module__, "template": base.template}
    return type(inline.__name__, (inline, NamedFieldsInline, base), names)


class NamedFieldsInline(_Inline):
    """Names the fields of a table to those who do not see the head of their column."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        """Return the form's field with its label on its widget."""
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None:
            field.widget.attrs["aria-label"] = str(field.label or db_field.verbose_name)
        return field
