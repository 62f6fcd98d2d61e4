"""The routes of links: REST, the dialog of a chat, and the pages that a link shows."""

from django.urls import path

from chatcore.base.rest.routes import build_url_patterns
from chatcore.contrib.sharing import api, pages

urlpatterns = [
    *build_url_patterns(
        {
            "api/v1/sessions/<uuid:session_id>/shares": api.SessionShareListView,
            "api/v1/shares": api.ShareListView,
            "api/v1/shares/<uuid:share_id>": api.ShareDetailView,
        }
    ),
    path("c/<uuid:pk>/share/", pages.show_share_dialog, name="share_chat"),
    path("c/<uuid:pk>/share/new/", pages.create_link, name="create_link"),
    path("shares/<uuid:pk>/revoke/", pages.revoke_link, name="revoke_link"),
    path("s/<str:token>/", pages.show_shared_chat, name="shared_chat"),
    path("s/<str:token>/files/<uuid:pk>/", pages.download_shared_file, name="shared_file"),
]
