"""The app of traces."""

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from chatcore.extension import ExtensionConfig


class Tracing(ExtensionConfig):
    default = True
    name = "chatcore.contrib.tracing"
    label = "tracing"
    verbose_name = "Traces"

    def ready(self) -> None:
        """Trace what this process does, if it should."""
        if settings.TRACES == "off":
            return
        try:
            from chatcore.contrib.tracing.spans import start_traces
        except ImportError as error:
            raise ImproperlyConfigured(
                "CHATCORE_TRACES needs packages: pip install 'chatcore[traces]'."
            ) from error
        start_traces(has_contents=settings.TRACES == "contents")
