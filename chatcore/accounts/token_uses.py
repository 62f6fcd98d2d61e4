"""Store when tokens were used, some seconds later and once a minute at most."""

from django.db import IntegrityError
from knox.models import AuthToken

from chatcore.base.rest.token_uses import take_uses
from chatcore.models import TokenName

STORE_SECONDS = 5.0


def store_uses() -> None:
    """Store the uses that this process has noted; those of tokens that are gone are dropped."""
    uses = take_uses()
    if not uses:
        return
    known = AuthToken.objects.filter(pk__in=uses).values_list("pk", flat=True)
    rows = [TokenName(token_id=digest, name="", used_at=uses[digest]) for digest in known]
    try:
        TokenName.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["token"], update_fields=["used_at"]
        )
    except IntegrityError:
        return  # one was revoked in this moment; the next use is stored
