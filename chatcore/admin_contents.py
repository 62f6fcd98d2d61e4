"""What staff see in the admin: contents only with the right `view_content`, and never unnoted.

It stands beside chatcore/admin_site.py, outside the package chatcore/admin/, for the same reason.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import ForeignKey, Model
from django.http import HttpRequest, HttpResponse

PERMISSION = "chatcore.view_content"
MAX_NOTED = 100
# Links between the admin's own pages narrow a list by these.
LINKED_LOOKUPS = ("id__exact", "session__id__exact", "seq__lt")
# What Django's filters ask of a column; `id` is that of the row that a relation leads to.
FILTER_LOOKUPS = ("exact", "in", "isnull", "isempty", "gte", "gt", "lt", "lte", "id__exact")
DATE_LOOKUPS = ("year", "month", "day")

# It is mixed into pages, whose methods it calls. To be one itself would change their order.
if TYPE_CHECKING:
    _Page = ModelAdmin[Any]
else:
    _Page = object


class AuditedAdmin(_Page):
    """Mixed into every page: hides `content_fields` from those without the right; notes all acts.

    A page names in `content_fields` what shows words of a conversation. Without the right, those
    are left out, also from searches and filters; related rows are shown by number, because a
    session's name is its title.
    """

    content_fields: tuple[str, ...]

    def may_see_contents(self, request: HttpRequest) -> bool:
        """Return whether this person may see what `content_fields` show."""
        return not self.content_fields or request.user.has_perm(PERMISSION)

    def get_list_display(self, request: HttpRequest) -> Any:
        names = super().get_list_display(request)
        return self._select_names(request, names) or ("pk",)

    def get_list_display_links(self, request: HttpRequest, list_display: Any) -> Any:
        links = super().get_list_display_links(request, list_display)
        return [name for name in links or () if name in list_display] or list(list_display)[:1]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if self.may_see_contents(request):
            return fieldsets
        rest = []
        for title, options in fieldsets:
            fields: list[Any] = []
            for name in options["fields"]:
                row = [name] if isinstance(name, str) else name
                fields.extend(self._select_names(request, row))
            if fields:
                rest.append((title, {**options, "fields": fields}))
        return rest

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        if self.may_see_contents(request):
            return fields
        numbers = [field.attname for field in self._list_named_relations()]
        return [*self._select_names(request, fields), *numbers]

    def get_search_fields(self, request: HttpRequest) -> Any:
        fields = super().get_search_fields(request)
        if self.may_see_contents(request):
            return fields
        return [name for name in fields if name.lstrip("=^@") not in self.content_fields]

    def lookup_allowed(self, lookup: str, value: str, request: Any = None) -> bool:
        """Refuse what neither the filters nor the search of this page name, with an answer of 400.

        Django lets every column of the row pass, shown or not. Yes and no to `startswith` read out
        a digest or a secret letter by letter.
        """
        if request is None or "\x00" in value:  # PostgreSQL stores no text with it
            return False
        if lookup in LINKED_LOOKUPS or lookup in getattr(self, "narrow_lookups", ()):
            return True
        if lookup in self.get_search_fields(request):
            return True
        hidden = () if self.may_see_contents(request) else self.content_fields
        filters = [*self.get_list_filter(request), self.date_hierarchy]
        return any(_is_lookup_of(item, lookup) for item in filters if item and item not in hidden)

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> Any:
        inlines = super().get_inline_instances(request, obj)
        if self.may_see_contents(request):
            return inlines
        return [inline for inline in inlines if not getattr(inline, "is_content", False)]

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        names, counts, missing_rights, obstacles = super().get_deleted_objects(objs, request)
        if not self.may_see_contents(request):
            names = [str(row.pk) for row in objs]
        return names, counts, missing_rights, obstacles

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show the page of a row; note a read of contents that are not the reader's own."""
        extra_context = dict(extra_context or {})
        if object_id is not None and not self.may_see_contents(request):
            extra_context |= {"original": _Number(object_id, self.opts), "subtitle": object_id}
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, extra_context
        )
        is_shown = request.method == "GET" and response.status_code == 200
        if is_shown and object_id is not None and self._shows_contents(request):
            row = self.get_object(request, object_id)
            if row is not None and _find_owner(row) != request.user.pk:
                _record("content.read", request, target=row)
        return response

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        """Show a list; note a read of contents by the filters' names, without what was searched."""
        if request.method == "GET" and self._shows_contents(request):
            session_id = request.GET.get("session__id__exact", "")
            names = sorted(set(request.GET) - {"session__id__exact"})
            _record(
                "content.listed",
                request,
                object_type=self.opts.label_lower,
                detail=f"session {session_id[:40]} {' '.join(names)[:200]}".strip(),
            )
        return super().changelist_view(request, extra_context)

    def response_action(
        self, request: HttpRequest, queryset: Any, *args: Any, **options: Any
    ) -> Any:
        """Note an action on each selected row before it is done."""
        name = request.POST.get("action", "")
        if name in self.get_actions(request):
            row_ids = request.POST.getlist(ACTION_CHECKBOX_NAME)
            label = self.opts.label_lower
            if request.POST.get("select_across") == "1" or len(row_ids) > MAX_NOTED:
                _record(f"admin.{name}", request, object_type=label, detail="many rows at once")
            else:
                for pk in row_ids:
                    _record(f"admin.{name}", request, object_type=label, object_id=pk)
        return super().response_action(request, queryset, *args, **options)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        _record("admin.added", request, target=obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Note which fields were changed, without their values."""
        _record("admin.changed", request, target=obj, detail=", ".join(_list_fields(message)))
        # Django's own log has the name of the row, which may be a content.
        if self.may_see_contents(request):
            return super().log_change(request, obj, message)
        return None

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        for row in queryset:
            _record("admin.deleted", request, target=row)
        if self.may_see_contents(request):
            return super().log_deletions(request, queryset)
        return None

    def _shows_contents(self, request: HttpRequest) -> bool:
        return bool(self.content_fields) and self.may_see_contents(request)

    def _select_names(self, request: HttpRequest, names: Iterable[Any]) -> list[Any]:
        """Return the names without contents; a relation to a row with a name, as its number."""
        if self.may_see_contents(request):
            return list(names)
        numbers = {field.name: field.attname for field in self._list_named_relations()}
        hidden = {*self.content_fields, "__str__"}
        return [numbers.get(name, name) for name in names if name not in hidden]

    def _list_named_relations(self) -> list[Any]:
        """Return the relations to rows whose own pages show contents."""
        return [
            field
            for field in self.opts.concrete_fields
            if isinstance(field, ForeignKey)
            and admin.site.is_registered(field.related_model)
            and getattr(admin.site.get_model_admin(field.related_model), "content_fields", None)
        ]


class _Number:
    """Stands in a page's texts for a row that is named by a content."""

    def __init__(self, pk: str, options: Any) -> None:
        self.pk = pk
        self._meta = options  # the page's links are made from it

    def __str__(self) -> str:
        return self.pk


@contextmanager
def hide_titles(request: HttpRequest) -> Iterator[None]:
    """Name sessions by their numbers inside the block, if this person may not see contents."""
    from chatcore.models.session import are_titles_hidden  # models are not loaded before

    marker = are_titles_hidden.set(not request.user.has_perm(PERMISSION))
    try:
        yield
    finally:
        are_titles_hidden.reset(marker)


def build_audited_class(page_class: type[ModelAdmin]) -> type[ModelAdmin]:
    """Return the class of a page that is audited before it does anything itself."""
    names = {
        "__module__": page_class.__module__,
        "content_fields": getattr(page_class, "content_fields", ()),
    }
    return type(page_class.__name__, (AuditedAdmin, page_class), names)


def _is_lookup_of(item: Any, lookup: str) -> bool:
    """Return whether an entry of `list_filter`, or the date hierarchy, asks this lookup."""
    if isinstance(item, type):
        return lookup == getattr(item, "parameter_name", None)
    name = item[0] if isinstance(item, tuple | list) else item
    lookups = (*FILTER_LOOKUPS, *DATE_LOOKUPS)
    return lookup == name or lookup in [f"{name}__{part}" for part in lookups]


def _find_owner(row: Model) -> Any:
    session = row if hasattr(row, "owner_id") else getattr(row, "session", None)
    return getattr(session, "owner_id", None)


def _list_fields(message: Any) -> list[str]:
    """Return the names of the fields that a message of Django's log is about."""
    names: list[str] = []
    for part in message if isinstance(message, list) else ():
        for act, facts in part.items():
            names.extend(str(name) for name in facts.get("fields", [f"{act} a row below"]))
    return names


def _record(act: str, request: HttpRequest, **facts: Any) -> None:
    # The log is a model, and this module is loaded before the models are.
    from chatcore.accounts import audit

    audit.record(act, request=request, **facts)
