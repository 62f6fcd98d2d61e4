"""The sessions of signed-in browsers, in the database."""

from django.contrib.sessions.backends.base import UpdateError
from django.contrib.sessions.backends.db import SessionStore as DatabaseSessionStore

from chatcore.base.databases.outages import find_outage


class SessionStore(DatabaseSessionStore):
    """Django's store, with the true reason when a session cannot be saved."""

    def save(self, must_create: bool = False) -> None:
        """Store the session. Raises UpdateError if it was deleted meanwhile."""
        try:
            super().save(must_create)
        except UpdateError as error:
            # Django says of every database error that the session was deleted, which becomes 400.
            cause = error.__context__
            if cause is not None and find_outage(cause):
                raise cause from cause.__cause__
            raise
