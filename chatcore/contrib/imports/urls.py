"""The routes of imports: the REST API, and the page of one."""

from django.urls import path

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.imports import pages
from chatcore.contrib.imports.api import chats, uploads

urlpatterns = [
    *build_url_patterns(
        {
            "api/v1/imports": chats.ImportListView,
            "api/v1/imports/uploads": uploads.UploadListView,
            "api/v1/imports/<uuid:import_id>": uploads.ImportDetailView,
            "api/v1/imports/<uuid:import_id>/files/<uuid:file_id>": uploads.UploadPieceView,
            "api/v1/imports/<uuid:import_id>/problems/<int:problem_id>/original": (
                uploads.ImportOriginalView
            ),
        }
    ),
    path("imports/<uuid:pk>/", pages.show_import, name="import"),
]
