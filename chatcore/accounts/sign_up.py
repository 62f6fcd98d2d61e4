"""Who may make an account."""

from django.conf import settings

from chatcore.base.stored_settings import read_stored


def get_sign_up_mode() -> str:
    """Return `closed`, `open`, or a choice of an app: by the variable, otherwise by the admin.

    The admin does not offer `open` (chatcore/admin/installation_settings.py).
    """
    mode = settings.SIGN_UP or read_stored("sign_up")
    return mode if mode in settings.SIGN_UP_CHOICES else "closed"
