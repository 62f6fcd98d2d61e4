"""Requests that may be repeated: the same Idempotency-Key creates once, and answers the same."""

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from datetime import timedelta
from functools import wraps
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse
from rest_framework.request import Request
from rest_framework.response import Response

from chatcore.api.new_sessions import build_created_response
from chatcore.base.databases.batches import delete_in_batches
from chatcore.base.databases.clock import read_clock
from chatcore.base.databases.person_lock import lock_person
from chatcore.base.rest.problems import InvalidFieldError, Problem
from chatcore.base.threads import repeat_beside
from chatcore.models import IdempotencyKey, Session
from chatcore.sessions.drafts import DraftLost
from chatcore.turns.control import IdempotencyConflict
from models_registry import keys

MAX_KEY_CHARS = 255
KEY_LIFETIME = timedelta(hours=24)
# How long a request that renews nothing is believed to run, and how often one that lives renews.
CLAIM_LEASE = timedelta(seconds=30)
RENEWAL_SECONDS = 8.0
REPLAYED_HEADER = "Idempotency-Replayed"

KEY_PARAMETER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": MAX_KEY_CHARS},
    OpenApiParameter.HEADER,
    description="The same key with the same body is answered the same, and does nothing more.",
)
REPLAYED_PARAMETER = OpenApiParameter(
    REPLAYED_HEADER,
    {"type": "string", "enum": ["true"]},
    OpenApiParameter.HEADER,
    response=[200, 201, 202],
    description="Sent with the answer to a repeated key.",
)
PARAMETERS = [KEY_PARAMETER, REPLAYED_PARAMETER]
CONFLICT_RESPONSE = OpenApiResponse(description="The key was used with another payload.")
# By status, or by status and media type.
Responses = dict[int | tuple[int, str], object]
RESPONSES: Responses = {
    409: OpenApiResponse(description="The first request with this key is still running."),
    422: CONFLICT_RESPONSE,
}

CreateMethod = Callable[..., Response]


def parse_key(request: Request) -> str | None:
    """Return the Idempotency-Key, or None. Raises the 400 problem for one of the wrong length."""
    key = request.headers.get("Idempotency-Key")
    if key is not None and not 1 <= len(key) <= MAX_KEY_CHARS:
        raise InvalidFieldError("Idempotency-Key", f"1 to {MAX_KEY_CHARS} characters.")
    return key


def hash_payload(action: str, payload: object) -> str:
    """Return a hash that is the same for the same action with the same payload."""
    text = json.dumps({"act": action, "payload": payload}, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def repeatable(*, in_transaction: bool = True) -> Callable[[CreateMethod], CreateMethod]:
    """Decorate a view's method that creates something, so that a key makes it repeatable.

    `in_transaction` stores the key and what is created together. What needs many transactions
    stores the key before, renews its lease while it works, and calls `settle` in the transaction
    that shows what was created; it forgets the key if it fails.
    """

    def decorate(create: CreateMethod) -> CreateMethod:
        @wraps(create)
        def create_once(
            view: object, request: Request, *args: object, **kwargs: object
        ) -> Response:
            key = parse_key(request)
            if key is None:
                return create(view, request, *args, **kwargs)
            payload_hash = hash_payload(request.path_info.rstrip("/"), request.data)
            if in_transaction:
                with transaction.atomic():
                    row, is_new = _claim_key(request, key, payload_hash)
                    if not is_new:
                        return _replay(request, row)
                    response = create(view, request, *args, **kwargs)
                    session_id = getattr(response, "session_id", None)
                    _store_answer(row, response.status_code, session_id, response.data)
                    return response
            with transaction.atomic():
                row, is_new = _claim_key(request, key, payload_hash)
            if not is_new:
                return _replay(request, row)
            request.claimed_key = row  # type: ignore[attr-defined]
            with ExitStack() as undo:
                # Not one that is settled, or that another request has taken over.
                undo.callback(IdempotencyKey.objects.filter(pk=row.pk, status=None).delete)
                with _keep_claim(row):
                    response = create(view, request, *args, **kwargs)
                undo.pop_all()
                return response

        return create_once

    return decorate


def settle(request: Request, *, session_id: UUID | None = None, body: object = None) -> None:
    """Store the answer 201 to a claimed key, in the transaction that shows what was created.

    The answer is a session or another body. Raises DraftLost if the claim was lost meanwhile, so
    that nothing is created twice. Does nothing for a request without a key.
    """
    row = getattr(request, "claimed_key", None)
    if row is not None:
        _store_answer(row, 201, session_id, body)


def _keep_claim(row: IdempotencyKey) -> AbstractContextManager[None]:
    """Renew the lease of a claim beside a block."""

    def renew() -> None:
        IdempotencyKey.objects.filter(pk=row.pk, status=None).update(
            lease_until=read_clock() + CLAIM_LEASE
        )

    return repeat_beside(renew, seconds=RENEWAL_SECONDS, name=f"claim-{row.pk}")


def _claim_key(request: Request, key: str, payload_hash: str) -> tuple[IdempotencyKey, bool]:
    """Return the key's row, and whether this request has just inserted it, in a transaction.

    Raises IdempotencyConflict for another payload, and the 409 problem while the first one runs.
    """
    owner_id: Any = request.user.pk  # it is known: permissions passed
    # The second of two requests at once waits here for the first one's claim. The constraint would
    # settle it as well, but each time with an error in PostgreSQL's log.
    lock_person(owner_id)
    now = read_clock()
    rows = IdempotencyKey.objects.filter(owner_id=owner_id, key=key)
    # The process of such a request is dead. A claim of an earlier version has no lease.
    is_abandoned = Q(status=None) & (Q(lease_until__lt=now) | Q(lease_until=None))
    rows.filter(Q(created_at__lt=now - KEY_LIFETIME) | is_abandoned).delete()
    stored_row = rows.first()
    if stored_row is None:
        row = IdempotencyKey(
            key=key, payload_hash=payload_hash, lease_until=now + CLAIM_LEASE, created_at=now
        )
        row.owner_id = owner_id
        row.save(force_insert=True)
        return row, True
    if stored_row.payload_hash != payload_hash:
        raise IdempotencyConflict("This Idempotency-Key was used with another payload.")
    if stored_row.status is None:
        detail = "The first request with this Idempotency-Key is still running."
        raise Problem(409, "request_running", detail, retry_after=2, repeated=True)
    return stored_row, False


def delete_old_keys() -> int:
    """Delete the keys that no request repeats any more. Returns how many."""
    old_keys = IdempotencyKey.objects.filter(created_at__lt=read_clock() - KEY_LIFETIME)
    return delete_in_batches(old_keys)


def _store_answer(row: IdempotencyKey, status: int, session_id: UUID | None, body: object) -> None:
    encrypted_body = "" if session_id else keys.encrypt(json.dumps(body, default=str))
    is_ours = IdempotencyKey.objects.filter(pk=row.pk, status=None).update(
        status=status, session_id=session_id, body=encrypted_body
    )
    if not is_ours:
        raise DraftLost("The request was interrupted for too long. Nothing was stored; try again.")


def _replay(request: Request, row: IdempotencyKey) -> Response:
    """Return the stored answer, and of a session what it is now. Raises Http404 if it is gone."""
    if row.session_id is not None:
        sessions = Session.objects.owned_by(request.user).select_related("model__provider")
        response = build_created_response(request, sessions.get(pk=row.session_id))
    else:
        body: Mapping[str, object] = json.loads(keys.decrypt(row.body))
        response = Response(body, status=row.status)
    response[REPLAYED_HEADER] = "true"
    return response
