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
from chatcore.threads import run_in_thread
from chatcore.tools.base import ToolError
from models_registry import keys

logger = logging.getLogger(__name__)

WEBHOOK_EVENTS = (
    "turn.completed",
    "turn.failed",
    "turn.cancelled",
    "compaction.applied",
    "compaction.failed",
)
SECRET_BYTES = 32
TIMEOUT_SECONDS = 15.0
MAX_CONCURRENT_DELIVERIES = 10
POLL_SECONDS = 2.0
CLAIM_DURATION = timedelta(seconds=60)  # a sender that dies is followed by another after that
DELIVERY_RETENTION = timedelta(days=30)
# Seconds before each further attempt, as the specification proposes; after the last one the delivery has failed.
RETRY_DELAYS_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
HTTP_GONE = 410
PRIVATE_FIELDS = (
    "detail",
    "reason",
)  # why something failed, in words of a provider's that may repeat the conversation's

_delivery_tasks: set[asyncio.Task[None]] = set()  # a loop holds its tasks only weakly


def generate_secret() -> str:
    """A signing secret as the specification writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def queue_deliveries(session_id: UUID, events: Iterable[tuple[int, str, dict[str, Any]]]) -> None:
    """Put what the session's owner wants to be told into the outbox, in the caller's transaction; (seq, name, data) each."""
    webhook_events = [event for event in events if event[1] in WEBHOOK_EVENTS]
    if not webhook_events:
        return
    hooks = list(
        Webhook.objects.filter(
            is_active=True, owner__is_active=True, owner__chat_sessions=session_id
        )
    )
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=hook, event=name, payload=_build_payload(session_id, seq, name, data)
        )
        for hook in hooks
        for seq, name, data in webhook_events
        if not hook.events or name in hook.events
    )


def build_signature(secret: str, delivery_id: str, timestamp: int, body: bytes) -> str:
    """The `webhook-signature` of Standard Webhooks, symmetric: v1 and the HMAC-SHA256 of id, timestamp and body."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    content = f"{delivery_id}.{timestamp}.".encode() + body
    return "v1," + base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()


async def start_due_deliveries() -> list[asyncio.Task[None]]:
    """Begin to send what is due, AT_ONCE at the most. Whoever asks again need not wait until that is done, so a slow address keeps no other
    waiting; TIMEOUT_SECONDS bound how many are on their way.
    """
    tasks = [
        asyncio.create_task(_send_delivery(delivery))
        for delivery in await run_in_thread(_claim_due_deliveries)
    ]
    for task in tasks:
        _delivery_tasks.add(task)
        task.add_done_callback(_delivery_tasks.discard)
    return tasks


def delete_old_deliveries() -> int:
    """Forget old deliveries, also those that wait for an address which was switched off; returns how many."""
    return WebhookDelivery.objects.filter(
        created_at__lt=timezone.now() - DELIVERY_RETENTION
    ).delete()[0]


def retry_deliveries(deliveries: Any) -> int:
    """Send these once more, from the first attempt on; returns how many."""
    changes = {
        "status": WebhookDelivery.Status.PENDING,
        "attempts": 0,
        "next_attempt_at": timezone.now(),
        "error": "",
    }
    return int(deliveries.update(**changes))


def _build_payload(session_id: UUID, seq: int, name: str, data: dict[str, Any]) -> dict[str, Any]:
    """Ids, numbers and names; no word of the conversation. The type of a failure is told, and the REST API says why."""
    public_data = {key: value for key, value in data.items() if key not in PRIVATE_FIELDS}
    return {
        "type": name,
        "timestamp": timezone.now().isoformat(),
        "data": {"session": str(session_id), "seq": seq, **public_data},
    }


def _claim_due_deliveries() -> list[WebhookDelivery]:
    """Some of what is due, now ours. Owners take turns, so that one whose addresses answer slowly does not keep the others waiting."""
    now = timezone.now()
    due_deliveries = WebhookDelivery.objects.filter(
        status=WebhookDelivery.Status.PENDING, next_attempt_at__lte=now
    )
    due_deliveries = due_deliveries.filter(webhook__is_active=True, webhook__owner__is_active=True)
    owner_rank = Window(
        RowNumber(), partition_by=F("webhook__owner"), order_by=F("next_attempt_at").asc()
    )
    next_deliveries = (
        due_deliveries.annotate(place=owner_rank)
        .select_related("webhook")
        .order_by("place", "next_attempt_at")[:MAX_CONCURRENT_DELIVERIES]
    )
    return [delivery for delivery in next_deliveries if _claim_delivery(delivery, now)]


def _claim_delivery(delivery: WebhookDelivery, now: datetime) -> bool:
    """Whether it is to be sent by us. One whose senders died each time, the last time too, has failed."""
    row = WebhookDelivery.objects.filter(
        pk=delivery.pk, attempts=delivery.attempts, status=WebhookDelivery.Status.PENDING
    )
    if delivery.attempts > len(RETRY_DELAYS_SECONDS):
        row.update(status=WebhookDelivery.Status.FAILED, error="Nothing came of the last attempt.")
        return False
    delivery.attempts += 1
    return bool(row.update(attempts=delivery.attempts, next_attempt_at=now + CLAIM_DURATION))


async def _send_delivery(delivery: WebhookDelivery) -> None:
    import httpx2

    status, error_text = None, ""
    try:
        status = await _post_delivery(delivery)
    except (ToolError, TimeoutError) as refusal:
        error_text = str(refusal) or "It did not answer in time."
    except keys.UnreadableKey as key_error:
        error_text = str(key_error)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError) as http_error:
        error_text = f"It could not be reached: {type(http_error).__name__}."
    except Exception as unexpected_error:
        logger.exception("delivery %s could not be sent", delivery.pk)
        error_text = f"It could not be sent: {type(unexpected_error).__name__}."
    await run_in_thread(_record_attempt, delivery, status, error_text)


async def _post_delivery(delivery: WebhookDelivery) -> int:
    import httpx2

    body = json.dumps(delivery.payload, separators=(",", ":"), ensure_ascii=False).encode()
    timestamp = int(timezone.now().timestamp())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "Chatcore/0.1 (webhooks)",
        "webhook-id": str(delivery.pk),
        "webhook-timestamp": str(timestamp),
        "webhook-signature": build_signature(
            keys.decrypt(delivery.webhook.secret), str(delivery.pk), timestamp, body
        ),
    }
    async with asyncio.timeout(TIMEOUT_SECONDS):
        url = httpx2.URL(delivery.webhook.url)
        async with outbound.open_response(
            url, method="POST", headers=headers, content=body, step_seconds=TIMEOUT_SECONDS
        ) as response:
            return response.status_code


def _record_attempt(delivery: WebhookDelivery, status: int | None, error: str) -> None:
    """Delivered on any 2xx; anything else, redirects too, is tried again; 410 means that the address wants no more."""
    now, is_exhausted = timezone.now(), delivery.attempts > len(RETRY_DELAYS_SECONDS)
    fields: dict[str, Any] = {
        "response_status": status,
        "error": error or ("" if _is_success(status) else f"It answered {status}."),
    }
    if _is_success(status):
        fields |= {"status": WebhookDelivery.Status.DELIVERED, "delivered_at": now}
    elif is_exhausted or status == HTTP_GONE:
        fields |= {"status": WebhookDelivery.Status.FAILED}
    else:
        fields |= {
            "next_attempt_at": now + timedelta(seconds=RETRY_DELAYS_SECONDS[delivery.attempts - 1])
        }
    with transaction.atomic():
        WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(**fields)
        if status == HTTP_GONE:
            Webhook.objects.filter(pk=delivery.webhook_id).update(is_active=False)


def _is_success(status: int | None) -> bool:
    return status is not None and 200 <= status < 300
