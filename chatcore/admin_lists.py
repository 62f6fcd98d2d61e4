"""Lists of the admin that stay quick with millions of rows: nothing is counted, indexes find.

It stands beside chatcore/admin_site.py, outside the package chatcore/admin/, for the same reason.
"""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from django.contrib.admin import ModelAdmin, ShowFacets
from django.contrib.admin.options import IncorrectLookupParameters
from django.db.models import ForeignKey, Q, QuerySet, UUIDField
from django.http import HttpRequest

MAX_PAGES = 200  # a page further back would skip as many rows as are before it

# They are mixed into pages and lists, whose methods they call.
if TYPE_CHECKING:
    from django.contrib.admin.views.main import ChangeList

    _Page = ModelAdmin[Any]
    _List = ChangeList
else:
    _Page = _List = object


class PageLinks:
    """What the template of the links to other pages asks: it knows the next page, not the last."""

    template_name = "admin/page_links.html"

    def __init__(self, number: int, *, has_more: bool) -> None:
        self.previous = number - 1
        self.next = number + 1 if has_more and number < MAX_PAGES else 0
        self.is_cut = has_more and number >= MAX_PAGES

    def get_elided_page_range(self, *args: Any, **options: Any) -> tuple[int, ...]:
        """Return no numbers of pages, for which Django asks; how many there are is not known."""
        return ()


class CountlessList(_List):
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


class QuickListAdmin(_Page):
    """Mixed into every page: its list counts nothing, and finds rows by indexes.

    A page of a large table offers in `list_filter` what an index answers. `narrow_filters` are
    offered once the list is narrowed by one of `narrow_lookups`, for example to one session; they
    are answered by reading the rest of it, which is then in `narrow_ordering`. `list_defer` names
    columns that a list does not show.
    """

    show_full_result_count = False
    show_facets = ShowFacets.NEVER  # each would count the table
    list_per_page = 50

    def get_changelist(self, request: HttpRequest, **options: Any) -> Any:
        return _build_list_class(super().get_changelist(request, **options))

    def get_list_filter(self, request: HttpRequest) -> Any:
        filters = super().get_list_filter(request)
        if self.is_narrow(request):
            return (*filters, *getattr(self, "narrow_filters", ()))
        return filters

    def get_ordering(self, request: HttpRequest) -> Any:
        if self.is_narrow(request) and (ordering := getattr(self, "narrow_ordering", None)):
            return ordering
        return super().get_ordering(request)

    def is_narrow(self, request: HttpRequest) -> bool:
        """Return whether the list shows a part of the table that an index finds."""
        lookups = getattr(self, "narrow_lookups", ("session__id__exact",))
        return any(request.GET.get(name) for name in lookups)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows, in a list without the columns that it does not show."""
        rows = super().get_queryset(request)
        return rows.defer(*getattr(self, "list_defer", ())) if is_list(request) else rows

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Compare numbers as numbers: Django would make texts of them, which no index finds."""
        names = [name.lstrip("=") for name in self.get_search_fields(request)]
        if not search_term or not names or not all(map(self._is_number, names)):
            return super().get_search_results(request, queryset, search_term)
        number = read_number(search_term)
        if number is None:
            return queryset.none(), False
        return queryset.filter(Q.create([(name, number) for name in names], Q.OR)), False

    def get_field_queryset(self, db: Any, db_field: Any, request: HttpRequest) -> Any:
        """Read what names the choices of a field with them, and not one by one."""
        model = db_field.remote_field.model
        rows = super().get_field_queryset(db, db_field, request)
        is_listed = self.admin_site.is_registered(model)
        page = self.admin_site.get_model_admin(model) if is_listed else None
        relations = getattr(page, "list_select_related", False)
        if isinstance(relations, list | tuple):
            rows = model._default_manager.all() if rows is None else rows
            return rows.select_related(*relations)
        return rows

    def _is_number(self, name: str) -> bool:
        """Return whether a search field is a UUID of the row, or of the row it belongs to."""
        options = self.opts
        for part in name.split("__"):
            field = options.pk if part == "pk" else options.get_field(part)
            if isinstance(field, ForeignKey):
                options = field.related_model._meta
        return isinstance(field, UUIDField)


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


def find_people(name: str, *, limit: int = 20) -> list[Any]:
    """Return the keys of those whose name begins so, or whose address is this, by indexes."""
    from allauth.account.models import EmailAddress  # models are not loaded before
    from django.contrib.auth.models import User

    name = name.strip()
    if not name:
        return []
    names = User.objects.filter(username__startswith=name).order_by("username")
    addresses = EmailAddress.objects.filter(email=name.lower())
    keys = [
        *names.values_list("pk", flat=True)[:limit],
        *addresses.values_list("user_id", flat=True)[:limit],
    ]
    return list(dict.fromkeys(keys))


def _build_list_class(base: Any) -> Any:
    return type(base.__name__, (CountlessList, base), {"__module__": __name__})
