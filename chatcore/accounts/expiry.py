"""Delete what signed people in and is over: sessions of browsers, their devices, tokens, failures.

Django, allauth, knox and axes each delete such rows only when somebody comes back to them.
"""

from datetime import timedelta

from allauth.usersessions.models import UserSession
from axes.models import AccessAttempt
from django.conf import settings
from django.contrib.sessions.models import Session as BrowserSession
from django.db.models import Exists, OuterRef
from knox.models import AuthToken

from chatcore.base.databases.batches import delete_in_batches
from chatcore.base.databases.clock import read_clock
from chatcore.extension import exclude_kept

# A browser is noted just after its session is stored; what is as old as this is noted for good.
NOTED_AFTER = timedelta(hours=1)


def delete_expired_sign_ins() -> int:
    """Delete expired sign-ins. Returns how many rows."""
    now = read_clock()
    count = delete_in_batches(BrowserSession.objects.filter(expire_date__lt=now))
    sessions = BrowserSession.objects.filter(pk=OuterRef("session_key"))
    devices = UserSession.objects.filter(~Exists(sessions), last_seen_at__lt=now - NOTED_AFTER)
    count += delete_in_batches(exclude_kept(devices, "user"))
    # With the names of the tokens.
    count += delete_in_batches(exclude_kept(AuthToken.objects.filter(expiry__lt=now), "user"))
    # As axes does at the next failure: an attempt counts no longer than this.
    attempts = AccessAttempt.objects.filter(attempt_time__lt=now - settings.AXES_COOLOFF_TIME)
    return count + delete_in_batches(attempts)
