"""Which of the APIs of others are served: CHATCORE_COMPATIBLE_APIS names them."""

from django.conf import settings


def is_on(name: str) -> bool:
    """Return whether an API is served: chat_completions, responses, messages or passed_on."""
    return name in settings.CHATCORE["COMPATIBLE_APIS"]
