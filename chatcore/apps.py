"""The Django apps of the conversation and of its admin site; neither imports compaction."""

from django.apps import AppConfig
from django.conf import settings
from django.contrib.admin.apps import SimpleAdminConfig

from chatcore.serving.error_reports import start_error_reports


class Chatcore(AppConfig):
    """The conversation: storage, turns, pages and REST."""

    name = "chatcore"
    verbose_name = "Conversations"

    def ready(self) -> None:
        """Register what others ask for."""
        from chatcore import signals
        from chatcore.base import checks  # noqa: F401
        from chatcore.serving import connections  # noqa: F401

        signals.files_released.connect(_delete_files, dispatch_uid="chatcore.files")
        start_error_reports(settings.SENTRY_DSN)


def _delete_files(names: list[str], **_: object) -> None:
    from chatcore.files import output_store  # which needs models

    output_store.delete_unused(names)


class AdminSite(SimpleAdminConfig):
    """Django's admin app with the site of this project.

    Its pages are loaded with the URLs: they take a second, which most commands have no use for.
    """

    default_site = "chatcore.admin.site.ChatcoreAdminSite"
