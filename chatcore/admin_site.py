"""The admin site with Chatcore's name, whose forms write only what a person has edited.

It is not in the package chatcore/admin/, because Django needs this class before it has loaded the
models, and importing that package would register pages of models that do not exist yet.
"""

from collections.abc import Iterable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.admin import ModelAdmin
from django.db.models import Field, JSONField, Model
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _
from unfold.sites import UnfoldAdminSite

from chatcore.admin_contents import build_audited_class, hide_titles
from chatcore.admin_lists import QuickListAdmin
from chatcore.admin_look import ADMIN_CONTENT_SECURITY_POLICY, build_page_class
from chatcore.admin_sidebar import build_sidebar
from chatcore.rest.strict_json import StrictDecoder

# A row of django-q's schedules names a function, and a worker calls it.
RUNS_ANYTHING = "Schedule"


class EditedFieldsAdmin(ModelAdmin):
    """Writes the fields that were edited, and no other column of the row.

    The program writes the same rows meanwhile: a turn counts events in its session, the catalog
    brings prices. What a form had shown when it was opened must not undo that.
    """

    def formfield_for_dbfield(self, db_field: Any, request: Any, **kwargs: Any) -> Any:
        """Return the form's field, which remembers on the page what it had shown at first."""
        if isinstance(db_field, JSONField):
            kwargs["decoder"] = StrictDecoder
        field = super().formfield_for_dbfield(db_field, request, **kwargs)
        if field is not None:
            field.show_hidden_initial = True
        return field

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Write the edited columns of a row, or a whole new row."""
        if change:
            obj.save(update_fields=_select_columns(obj, form.changed_data))
        else:
            obj.save()

    def save_formset(self, request: HttpRequest, form: Any, formset: Any, change: bool) -> None:
        """Write the edited columns of the rows below the form."""
        formset.save(commit=False)
        for row in formset.deleted_objects:
            row.delete()
        for row, edited_names in formset.changed_objects:
            row.save(update_fields=_select_columns(row, edited_names))
        for row in formset.new_objects:
            row.save()
        formset.save_m2m()


class ChatcoreAdminSite(UnfoldAdminSite):
    """The site of all admin pages, those of Django and of packages too."""

    index_title = _("Overview")

    def get_sidebar_list(self, request: HttpRequest) -> list[dict[str, Any]]:
        """Return the pages that this person may open, by subject."""
        return build_sidebar(self.get_app_list(request), request.path)

    def index(self, request: HttpRequest, extra_context: Any = None) -> TemplateResponse:
        """Show what happens today, in the cards that this person has rights for."""
        lists = [import_string(name) for name in settings.ADMIN_OVERVIEW]
        cards = [card for list_cards in lists for card in list_cards(request)]
        return super().index(request, {"cards": cards, **(extra_context or {})})

    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Show the pages' own sign-in, which asks for second factors and knows other ways in."""
        if request.user.is_authenticated and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        from chatcore.web.account import SignInView  # the pages need models, this module does not

        page = SignInView.as_view(redirect_authenticated_user=False, next_page="admin:index")
        return page(request)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Make each page wholly while titles are hidden from those who may not see contents.

        These pages alone have a policy that lets Alpine work.
        """
        show_page = super().admin_view(view, cacheable)

        @wraps(show_page)
        def show(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            with hide_titles(request):
                response = show_page(request, *args, **kwargs)
                if isinstance(response, TemplateResponse):
                    response = response.render()
            response.headers.setdefault("Content-Security-Policy", ADMIN_CONTENT_SECURITY_POLICY)
            return response

        return show

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin] | None = None,
        **options: Any,
    ) -> None:
        """Register pages that write edited fields only, and none that runs what is typed in."""
        if getattr(model_or_iterable, "__name__", "") == RUNS_ANYTHING:
            return
        page_class = build_page_class(admin_class or ModelAdmin, EditedFieldsAdmin, QuickListAdmin)
        super().register(model_or_iterable, build_audited_class(page_class), **options)


def _select_columns(row: Model, names: Iterable[str]) -> list[str]:
    """Return those of the names that are columns of the row's own table."""
    columns = {field.name for field in row._meta.concrete_fields if isinstance(field, Field)}
    return sorted(columns.intersection(names))
