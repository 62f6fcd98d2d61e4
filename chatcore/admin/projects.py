"""The admin page of projects: who has which, and what they say, for those who may see contents."""

from django.contrib import admin
from django.db.models import Count, QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from chatcore.admin.base import ReadOnlyAdmin
from chatcore.admin.texts import render_preformatted
from chatcore.models import Project


@admin.register(Project)
class ProjectAdmin(ReadOnlyAdmin):
    content_fields = ("name", "instructions", "shown_rules", "file_names")
    list_display = ("__str__", "owner", "file_count", "created_at", "edited_at")
    list_select_related = ("owner",)
    search_fields = ("=id", "name", "owner__username")
    sortable_by = ()
    ordering = ("-edited_at", "-id")
    fields = (
        "name",
        "owner",
        "instructions",
        "shown_rules",
        "file_names",
        "created_at",
        "edited_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        return super().get_queryset(request).annotate(files_of_it=Count("files"))

    @admin.display(description="Files")
    def file_count(self, project: Project) -> int:
        return int(getattr(project, "files_of_it", 0))

    @admin.display(description="Rules")
    def shown_rules(self, project: Project) -> SafeString:
        return render_preformatted("\n".join(project.rules))

    @admin.display(description="Files")
    def file_names(self, project: Project) -> SafeString:
        return render_preformatted("\n".join(project.files.values_list("name", flat=True)))
