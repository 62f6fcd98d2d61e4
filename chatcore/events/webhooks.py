"""Telling the owner's addresses of finished turns and compactions, as Standard Webhooks signs it; the delivery's row is the outbox."""

import asyncio
import base64
import hashlib
import hmac
import json
import logging
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from chatcore.models import Webhook, WebhookDelivery
from chatcore.net import outbound
from chatcore.threads import in_thread
from chatcore.tools.base import ToolError
from models_registry import keys

logger = logging.getLogger(__name__)

EVENTS = (
    "turn.completed",
    "turn.failed",
    "turn.cancelled",
    "compaction.applied",
    "compaction.failed",
)
SECRET_BYTES = 32
TIMEOUT_SECONDS = 15.0
AT_ONCE = 10
POLL_SECONDS = 2.0
CLAIM = timedelta(seconds=60)  # a sender that dies is followed by another after that
KEEP = timedelta(days=30)
# Seconds before each further attempt, as the specification proposes; after the last one the delivery has failed.
WAITS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
GONE = 410
UNTOLD = (
    "detail",
    "reason",
)  # why something failed, in words of a provider's that may repeat the conversation's

_on_their_way: set[asyncio.Task[None]] = set()  # a loop holds its tasks only weakly


def new_secret() -> str:
    """A signing secret as the specification writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def note(session_id: UUID, events: Iterable[tuple[int, str, dict[str, Any]]]) -> None:
    """Put what the session's owner wants to be told into the outbox, in the caller's transaction; (seq, name, data) each."""
    told = [event for event in events if event[1] in EVENTS]
    if not told:
        return
    hooks = list(
        Webhook.objects.filter(
            is_active=True, owner__is_active=True, owner__chat_sessions=session_id
        )
    )
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(webhook=hook, event=name, payload=_payload(session_id, seq, name, data))
        for hook in hooks
        for seq, name, data in told
        if not hook.events or name in hook.events
    )


def signature(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of Standard Webhooks, symmetric: v1 and the HMAC-SHA256 of id, timestamp and body."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


async def deliver_due() -> list[asyncio.Task[None]]:
    """Begin to send what is due, AT_ONCE at the most. Whoever asks again need not wait until that is done, so a slow address keeps no other
    waiting; TIMEOUT_SECONDS bound how many are on their way.
    """
    begun = [asyncio.create_task(_deliver(delivery)) for delivery in await in_thread(_claimed)]
    for task in begun:
        _on_their_way.add(task)
        task.add_done_callback(_on_their_way.discard)
    return begun


def prune() -> int:
    """Forget old deliveries, also those that wait for an address which was switched off; returns how many."""
    return WebhookDelivery.objects.filter(created_at__lt=timezone.now() - KEEP).delete()[0]


def retry(deliveries: Any) -> int:
    """Send these once more, from the first attempt on; returns how many."""
    changes = {
        "status": WebhookDelivery.Status.PENDING,
        "attempts": 0,
        "next_attempt_at": timezone.now(),
        "error": "",
    }
    return int(deliveries.update(**changes))


def _payload(session_id: UUID, seq: int, name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Ids, numbers and names; no word of the conversation. The type of a failure is told, and the REST API says why."""
    told = {key: value for key, value in data.items() if key not in UNTOLD}
    return {
        "type": name,
        "timestamp": timezone.now().isoformat(),
        "data": {"session": str(session_id), "seq": seq, **told},
    }


def _claimed() -> list[WebhookDelivery]:
    """Some of what is due, now ours. Owners take turns, so that one whose addresses answer slowly does not keep the others waiting."""
    now = timezone.now()
    due = WebhookDelivery.objects.filter(
        status=WebhookDelivery.Status.PENDING, next_attempt_at__lte=now
    )
    due = due.filter(webhook__is_active=True, webhook__owner__is_active=True)
    place = Window(
        RowNumber(), partition_by=F("webhook__owner"), order_by=F("next_attempt_at").asc()
    )
    first = (
        due.annotate(place=place)
        .select_related("webhook")
        .order_by("place", "next_attempt_at")[:AT_ONCE]
    )
    return [delivery for delivery in first if _claim(delivery, now)]


def _claim(delivery: WebhookDelivery, now: datetime) -> bool:
    """Whether it is to be sent by us. One whose senders died each time, the last time too, has failed."""
    row = WebhookDelivery.objects.filter(
        pk=delivery.pk, attempts=delivery.attempts, status=WebhookDelivery.Status.PENDING
    )
    if delivery.attempts > len(WAITS):
        row.update(status=WebhookDelivery.Status.FAILED, error="Nothing came of the last attempt.")
        return False
    delivery.attempts += 1
    return bool(row.update(attempts=delivery.attempts, next_attempt_at=now + CLAIM))


async def _deliver(delivery: WebhookDelivery) -> None:
    import httpx2

    status, error = None, ""
    try:
        status = await _posted(delivery)
    except (ToolError, TimeoutError) as refused:
        error = str(refused) or "It did not answer in time."
    except keys.UnreadableKey as unreadable:
        error = str(unreadable)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as failed:
        error = f"It could not be reached: {type(failed).__name__}."
    except Exception as unforeseen:
        logger.exception("delivery %s could not be sent", delivery.pk)
        error = f"It could not be sent: {type(unforeseen).__name__}."
    await in_thread(_record, delivery, status, error)


async def _posted(delivery: WebhookDelivery) -> int:
    import httpx2

    body = json.dumps(delivery.payload, separators=(",", ":"), ensure_ascii=False).encode()
    now = int(timezone.now().timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Chatcore/0.1 (webhooks)",
        "webhook-id": str(delivery.pk),
        "webhook-timestamp": str(now),
        "webhook-signature": signature(
            keys.decrypt(delivery.webhook.secret), str(delivery.pk), now, body
        ),
    }
    async with asyncio.timeout(TIMEOUT_SECONDS):
        url = httpx2.URL(delivery.webhook.url)
        async with outbound.answer(
            url, method="POST", headers=headers, content=body, step_seconds=TIMEOUT_SECONDS
        ) as response:
            return response.status_code


def _record(delivery: WebhookDelivery, status: int | None, error: str) -> None:
    """Delivered on any 2xx; anything else, redirects too, is tried again; 410 means that the address wants no more."""
    now, given_up = timezone.now(), delivery.attempts > len(WAITS)
    fields: dict[str, Any] = {
        "response_status": status,
        "error": error or ("" if _fine(status) else f"It answered {status}."),
    }
    if _fine(status):
        fields |= {"status": WebhookDelivery.Status.DELIVERED, "delivered_at": now}
    elif given_up or status == GONE:
        fields |= {"status": WebhookDelivery.Status.FAILED}
    else:
        fields |= {"next_attempt_at": now + timedelta(seconds=WAITS[delivery.attempts - 1])}
    with transaction.atomic():
        WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(**fields)
        if status == GONE:
            Webhook.objects.filter(pk=delivery.webhook_id).update(is_active=False)


def _fine(status: int | None) -> bool:
    return status is not None and 200 <= status < 300
