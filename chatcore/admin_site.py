"""The admin site with Chatcore's name, whose forms write only what a person has edited.

It is not in the package chatcore/admin/, because Django needs this class before it has loaded the
models, and importing that package would register pages of models that do not exist yet.
"""

from collections.abc import Iterable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.db.models import Field, JSONField, Model
from django.http import HttpRequest, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from chatcore.admin_contents import build_audited_class, hide_titles
from chatcore.rest.strict_json import StrictDecoder


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


class ChatcoreAdminSite(AdminSite):
    """The site of all admin pages, those of Django and of packages too."""

    site_header = "Chatcore"
    site_title = "Chatcore admin"
    index_title = "Administration"

    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Show the pages' own sign-in, which asks for second factors and knows other ways in."""
        if request.user.is_authenticated and self.has_permission(request):
            return HttpResponseRedirect(reverse("admin:index", current_app=self.name))
        from chatcore.web.account import SignInView  # the pages need models, this module does not

        page = SignInView.as_view(redirect_authenticated_user=False, next_page="admin:index")
        return page(request)

    def admin_view(self, view: Any, cacheable: bool = False) -> Any:
        """Make each page wholly while titles are hidden from those who may not see contents."""
        show_page = super().admin_view(view, cacheable)

        @wraps(show_page)
        def show(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
            with hide_titles(request):
                response = show_page(request, *args, **kwargs)
                return response.render() if isinstance(response, TemplateResponse) else response

        return show

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin] | None = None,
        **options: Any,
    ) -> None:
        """Register pages that write edited fields only."""
        page_class = admin_class or ModelAdmin
        # What a page does itself when it saves comes first, and then calls ours.
        bases = (page_class, EditedFieldsAdmin) if admin_class else (EditedFieldsAdmin,)
        edited_class = type(page_class.__name__, bases, {"__module__": page_class.__module__})
        super().register(model_or_iterable, build_audited_class(edited_class), **options)


def _select_columns(row: Model, names: Iterable[str]) -> list[str]:
    """Return those of the names that are columns of the row's own table."""
    columns = {field.name for field in row._meta.concrete_fields if isinstance(field, Field)}
    return sorted(columns.intersection(names))
