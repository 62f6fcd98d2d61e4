"""Store when tokens were used, some seconds later and once a minute at most."""

from django.db import transaction
from knox.models import AuthToken

from chatcore.base.rest.token_uses import take_uses
from chatcore.models import TokenName

STORE_SECONDS = 5.0


def store_uses() -> None:
    """Store the uses that this process has noted; those of tokens that are gone are dropped.

    A token that is revoked meanwhile waits for this transaction, or this one for its end.
    """
    uses = take_uses()
    if not uses:
        return
    with transaction.atomic():
        names = TokenName.objects.filter(token__in=uses).order_by("pk")
        rows = list(names.select_for_update(no_key=True))
        for row in rows:
            row.used_at = uses[row.token_id]
        TokenName.objects.bulk_update(rows, ["used_at"])
        unnamed = AuthToken.objects.filter(pk__in=uses.keys() - {row.token_id for row in rows})
        tokens = unnamed.select_for_update(no_key=True).order_by("pk")
        TokenName.objects.bulk_create(
            [TokenName(token=token, name="", used_at=uses[token.pk]) for token in tokens],
            ignore_conflicts=True,
        )
