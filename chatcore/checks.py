"""System checks of the setting CHATCORE."""

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.utils.module_loading import import_string

REPLACED_SETTINGS = ("CONTEXT_GUARD", "POLICIES", "VALIDATE_OVERRIDE", "TOOL_OUTPUT")


@register(Tags.compatibility)
def check_compactor(**_: object) -> list[CheckMessage]:
    """Report a compactor that cannot be imported."""
    path = settings.CHATCORE.get("COMPACTOR")
    if not path:
        return []
    try:
        import_string(path)
    except ImportError as error:
        return [Error(f'CHATCORE["COMPACTOR"] cannot be imported: {error}', id="chatcore.E001")]
    return []


@register(Tags.compatibility)
def check_replaced_settings(**_: object) -> list[CheckMessage]:
    """Warn about settings of earlier versions, which are ignored now."""
    return [
        Warning(
            f'CHATCORE["{name}"] is no longer used.',
            hint='Name one class in CHATCORE["COMPACTOR"] (docs/decisions/0005).',
            id="chatcore.W001",
        )
        for name in REPLACED_SETTINGS
        if name in settings.CHATCORE
    ]
