"""What every page of the admin does, those of packages too.

Contents are shown with the right `view_content` only, and never unnoted. A form writes what was
edited. A list counts nothing, and finds rows by indexes.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, TypeVar
from uuid import UUID

from allauth.account.models import EmailAddress
from django.contrib.admin import ShowFacets
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters, InlineModelAdmin
from django.contrib.auth import get_user_model
from django.db.models import Field, ForeignKey, JSONField, Model, Q, QuerySet, UUIDField
from django.forms import BaseModelFormSet, ModelForm
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin, TabularInline
from unfold.views import ChangeList

from chatcore.accounts import audit
from chatcore.admin.site import CONTENT_PERMISSION
from chatcore.base.rest.parsers import StrictDecoder

T = TypeVar("T")
# Names, counts by kind, missing rights, and what stays.
DeletedObjects = tuple[list[str], dict[str, int], set[str], list[str]]

MAX_NOTED = 100
MAX_PAGES = 200  # a page further back would skip as many rows as are before it
# Links between the admin's own pages narrow a list by these.
LINKED_LOOKUPS = ("id__exact", "session__id__exact", "seq__lt")
# What Django's filters ask of a column; `id` is that of the row that a relation leads to.
FILTER_LOOKUPS = ("exact", "in", "isnull", "isempty", "gte", "gt", "lt", "lte", "id__exact")
DATE_LOOKUPS = ("year", "month", "day")


class PageLinks:
    """What the template of the links to other pages asks: it knows the next page, not the last."""

    template_name = "admin/page_links.html"

    def __init__(self, number: int, *, has_more: bool) -> None:
        self.previous = number - 1
        self.next = number + 1 if has_more and number < MAX_PAGES else 0
        self.is_cut = has_more and number >= MAX_PAGES

    def get_elided_page_range(self, *args: object, **options: object) -> tuple[int, ...]:
        """Return no numbers of pages, for which Django asks; how many there are is not known."""
        return ()


class CountlessList(ChangeList):
    """A list that reads the rows of one page and one more, which tells if there is another."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the page. Django's own counts all rows first."""
        if not 1 <= self.page_num <= MAX_PAGES:
            raise IncorrectLookupParameters
        start = (self.page_num - 1) * self.list_per_page
        rows = list(self.queryset[start : start + self.list_per_page + 1])
        has_more = len(rows) > self.list_per_page
        self.result_list = rows[: self.list_per_page]
        self.result_count = self.full_result_count = len(self.result_list)
        self.show_full_result_count = self.can_show_all = False
        self.show_admin_actions = bool(rows)
        self.multi_page = has_more or self.page_num > 1
        self.paginator = PageLinks(self.page_num, has_more=has_more)


class ChatcoreAdmin(ModelAdmin):
    """A page in Chatcore's look.

    `content_fields` names what shows words of a conversation. Those without the right do not get
    them, not in searches and filters either; sessions and projects are then named by their numbers
    (chatcore/admin/site.py).

    A page of a large table offers in `list_filter` what an index answers. `narrow_filters` are
    offered once the list is narrowed by one of `narrow_lookups`, for example to one session; they
    are answered by reading the rest of it, which is then in `narrow_ordering`. `list_defer` names
    columns that a list does not show. `sidebar` names the subject and the icon of the page's link,
    where chatcore/admin/site.py does not.
    """

    sidebar: tuple[str, str] = ("", "")
    content_fields: tuple[str, ...] = ()
    narrow_filters: tuple[str, ...] = ()
    narrow_lookups: tuple[str, ...] = ("session__id__exact",)
    narrow_ordering: tuple[str, ...] = ()
    list_defer: tuple[str, ...] = ()
    list_per_page = 50
    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # each would count the table

    # Contents: who sees them, and that they were seen.

    def may_see_contents(self, request: HttpRequest) -> bool:
        """Return whether this person may see what `content_fields` show."""
        return not self.content_fields or request.user.has_perm(CONTENT_PERMISSION)

    def get_list_display(self, request: HttpRequest) -> Any:
        return self._select_names(request, super().get_list_display(request))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = []
        for title, options in super().get_fieldsets(request, obj):
            rows = [
                name if isinstance(name, str) else self._select_names(request, name)
                for name in self._select_names(request, options["fields"])
            ]
            if fields := [row for row in rows if row]:
                fieldsets.append((title, {**options, "fields": fields}))
        return fieldsets

    def get_search_fields(self, request: HttpRequest) -> Sequence[str]:
        fields: Sequence[str] = super().get_search_fields(request)
        names = self._select_names(request, [name.lstrip("=^@") for name in fields])
        return [name for name in fields if name.lstrip("=^@") in names]

    def get_inline_instances(self, request: HttpRequest, obj: Any = None) -> list[InlineModelAdmin]:
        inlines: list[InlineModelAdmin] = super().get_inline_instances(request, obj)
        if self.may_see_contents(request):
            return inlines
        return [inline for inline in inlines if not getattr(inline, "is_content", False)]

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse what neither the filters nor the search of this page name, with an answer of 400.

        Django lets every column of the row pass, shown or not. Yes and no to `startswith` read out
        a digest or a secret letter by letter.
        """
        if "\x00" in value:  # PostgreSQL stores no text with it
            return False
        if lookup in (*LINKED_LOOKUPS, *self.narrow_lookups, *self.get_search_fields(request)):
            return True
        filters = [*self.get_list_filter(request), self.date_hierarchy]
        return any(
            _is_lookup_of(item, lookup) for item in self._select_names(request, filters) if item
        )

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, object] | None = None,
    ) -> HttpResponse:
        """Show the page of a row; note a read of contents that are not the reader's own."""
        response: HttpResponse = super().changeform_view(
            request, object_id, form_url, extra_context
        )
        is_shown = request.method == "GET" and response.status_code == 200
        if is_shown and object_id is not None and self._shows_contents(request):
            row = self.get_object(request, object_id)
            if row is not None and _find_owner(row) != request.user.pk:
                audit.record("content.read", request=request, target=row)
        return response

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, object] | None = None
    ) -> HttpResponse:
        """Show a list; note a read of contents by the filters' names, without what was searched."""
        if request.method == "GET" and self._shows_contents(request):
            session_id = request.GET.get("session__id__exact", "")
            names = sorted(set(request.GET) - {"session__id__exact"})
            audit.record(
                "content.listed",
                request=request,
                object_type=self.opts.label_lower,
                detail=f"session {session_id[:40]} {' '.join(names)[:200]}".strip(),
            )
        response: HttpResponse = super().changelist_view(request, extra_context)
        return response

    def _shows_contents(self, request: HttpRequest) -> bool:
        return bool(self.content_fields) and self.may_see_contents(request)

    def _select_names(self, request: HttpRequest, names: Iterable[T]) -> list[T]:
        """Return the names without those of contents, for who may not see any."""
        hidden = () if self.may_see_contents(request) else self.content_fields
        return [name for name in names if name not in hidden]

    # Acts: all are noted.

    def response_action(
        self, request: HttpRequest, queryset: Any, *args: Any, **options: Any
    ) -> object:
        """Note an action on each selected row before it is done."""
        name = request.POST.get("action", "")
        if name in self.get_actions(request):
            row_ids = request.POST.getlist(ACTION_CHECKBOX_NAME)
            record = partial(
                audit.record,
                f"admin.{name}",
                request=request,
                object_type=self.opts.label_lower,
            )
            if request.POST.get("select_across") == "1" or len(row_ids) > MAX_NOTED:
                record(detail="many rows at once")
            else:
                for pk in row_ids:
                    record(object_id=pk)
        return super().response_action(request, queryset, *args, **options)

    def log_addition(self, request: HttpRequest, obj: Any, message: object) -> object:
        audit.record("admin.added", request=request, target=obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: object) -> object:
        """Note which fields were changed, without their values."""
        detail = ", ".join(_list_fields(message))
        audit.record("admin.changed", request=request, target=obj, detail=detail)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> object:
        for row in queryset:
            audit.record("admin.deleted", request=request, target=row)
        return super().log_deletions(request, queryset)

    # Forms: the program writes the same rows meanwhile. A turn counts events in its session, the
    # catalog brings prices; what a form had shown when it was opened must not undo that.

    def formfield_for_dbfield(
        self, db_field: Field, request: HttpRequest, **kwargs: object
    ) -> object:
        """Return the form's field, which remembers on the page what it had shown at first."""
        if isinstance(db_field, JSONField):
            kwargs["decoder"] = StrictDecoder
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.show_hidden_initial = True
        return field

    def get_field_queryset(
        self, db: str | None, db_field: ForeignKey, request: HttpRequest
    ) -> QuerySet[Model] | None:
        """Read what names the choices of a field with them, and not one by one."""
        model = db_field.remote_field.model
        rows: QuerySet[Model] | None = super().get_field_queryset(db, db_field, request)
        is_listed = self.admin_site.is_registered(model)
        page = self.admin_site.get_model_admin(model) if is_listed else None
        relations = getattr(page, "list_select_related", False)
        if isinstance(relations, list | tuple):
            rows = model._default_manager.all() if rows is None else rows
            return rows.select_related(*relations)
        return rows

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write the edited columns of a row, or a whole new row."""
        if change:
            obj.save(update_fields=_select_columns(obj, form.changed_data))
        else:
            obj.save()

    def save_formset(
        self, request: HttpRequest, form: ModelForm, formset: BaseModelFormSet, change: bool
    ) -> None:
        """Write the edited columns of the rows below the form."""
        formset.save(commit=False)
        for row in formset.deleted_objects:
            row.delete()
        for row, edited_names in formset.changed_objects:
            row.save(update_fields=_select_columns(row, edited_names))
        for row in formset.new_objects:
            row.save()
        formset.save_m2m()

    # Lists.

    def get_changelist(self, request: HttpRequest, **options: object) -> type[ChangeList]:
        return CountlessList

    def get_list_filter(self, request: HttpRequest) -> Sequence[object]:
        filters: Sequence[object] = super().get_list_filter(request)
        return (*filters, *self.narrow_filters) if self._is_narrow(request) else filters

    def get_ordering(self, request: HttpRequest) -> Sequence[object]:
        is_narrow = self.narrow_ordering and self._is_narrow(request)
        ordering: Sequence[object] = super().get_ordering(request)
        return self.narrow_ordering if is_narrow else ordering

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows, in a list without the columns that it does not show."""
        rows: QuerySet[Any] = super().get_queryset(request)
        return rows.defer(*self.list_defer) if is_list(request) else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Compare numbers as numbers: Django would make texts of them, which no index finds."""
        names = [name.lstrip("=") for name in self.get_search_fields(request)]
        if not search_term or not names or not all(map(self._is_number, names)):
            found: tuple[QuerySet[Any], bool] = super().get_search_results(
                request, queryset, search_term
            )
            return found
        number = read_number(search_term)
        if number is None:
            return queryset.none(), False
        return queryset.filter(Q.create([(name, number) for name in names], Q.OR)), False

    def _is_narrow(self, request: HttpRequest) -> bool:
        """Return whether the list shows a part of the table that an index finds."""
        return any(request.GET.get(name) for name in self.narrow_lookups)

    def _is_number(self, name: str) -> bool:
        """Return whether a search field is a UUID of the row, or of the row it belongs to."""
        options = self.opts
        for part in name.split("__"):
            field = options.pk if part == "pk" else options.get_field(part)
            if isinstance(field, ForeignKey):
                options = field.related_model._meta
        return isinstance(field, UUIDField)


class UneditableAdmin(ChatcoreAdmin):
    """A page of rows that only the program writes; who has the right may delete them."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class ReadOnlyAdmin(UneditableAdmin):
    """A page of rows that only the program writes and deletes."""

    def has_delete_permission(self, request: HttpRequest, obj: object = None) -> bool:
        return False


class ChatcoreInline(TabularInline):
    """A table of rows below a form, with names for those who do not see the head of a column."""

    def formfield_for_dbfield(
        self, db_field: Field, request: HttpRequest | None, **options: object
    ) -> object:
        """Return the form's field with its label on its widget."""
        field = super().formfield_for_dbfield(db_field, request, **options)
        if field is not None:
            field.widget.attrs["aria-label"] = str(field.label or db_field.verbose_name)
        return field


def is_list(request: HttpRequest) -> bool:
    """Return whether a request asks for a list."""
    match = request.resolver_match
    return match is not None and (match.url_name or "").endswith("_changelist")


def read_number(text: str) -> UUID | None:
    """Return the UUID that a text is, in any of its forms; None if it is none."""
    try:
        return UUID(text.strip().removeprefix("resp_"))
    except ValueError:
        return None


def find_people(name: str, *, limit: int = 20) -> list[int]:
    """Return the keys of those whose name begins so, or whose address is this, by indexes."""
    name = name.strip()
    if not name:
        return []
    names = get_user_model()._default_manager.filter(username__startswith=name).order_by("username")
    addresses = EmailAddress.objects.filter(email=name.lower())
    keys = [
        *names.values_list("pk", flat=True)[:limit],
        *addresses.values_list("user_id", flat=True)[:limit],
    ]
    return list(dict.fromkeys(keys))


def _is_lookup_of(item: object, lookup: str) -> bool:
    """Return whether an entry of `list_filter`, or the date hierarchy, asks this lookup."""
    if isinstance(item, type):
        return lookup == getattr(item, "parameter_name", None)
    name = item[0] if isinstance(item, tuple | list) else item
    lookups = (*FILTER_LOOKUPS, *DATE_LOOKUPS)
    return lookup == name or lookup in [f"{name}__{part}" for part in lookups]


def _find_owner(row: Model) -> object:
    session = row if hasattr(row, "owner_id") else getattr(row, "session", None)
    return getattr(session, "owner_id", None)


def _list_fields(message: object) -> list[str]:
    """Return the names of the fields that a message of Django's log is about."""
    names: list[str] = []
    for part in message if isinstance(message, list) else ():
        for act, facts in part.items():
            names.extend(str(name) for name in facts.get("fields", [f"{act} a row below"]))
    return names


def _select_columns(row: Model, names: Iterable[str]) -> list[str]:
    """Return those of the names that are columns of the row's own table."""
    columns = {field.name for field in row._meta.concrete_fields if isinstance(field, Field)}
    return sorted(columns.intersection(names))
