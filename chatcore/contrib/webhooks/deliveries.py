"""Send the owner's webhooks when a turn or a compaction has ended, as Standard Webhooks describes.

The row of a delivery is the outbox: it is written with the event itself, and sent afterwards.
"""

import asyncio
import base64
import json
import logging
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import F, Min, Q, QuerySet, Window
from django.db.models.functions import RowNumber
from django.utils import timezone
from standardwebhooks import Webhook as WebhookSigner

from chatcore.base.databases.clock import read_clock
from chatcore.base.net import outbound
from chatcore.base.net.address_guard import NotReached
from chatcore.base.threads import run_in_thread
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.events.types import Event, EventType
from models_registry import keys

logger = logging.getLogger(__name__)

WEBHOOK_EVENTS = (
    EventType.TURN_COMPLETED.value,
    EventType.TURN_FAILED.value,
    EventType.TURN_CANCELLED.value,
    EventType.COMPACTION_APPLIED.value,
    EventType.COMPACTION_FAILED.value,
)
SECRET_BYTES = 32
TIMEOUT_SECONDS = 15.0
MAX_CONCURRENT_DELIVERIES = 10
POLL_SECONDS = 5.0
CLAIM_DURATION = timedelta(seconds=60)  # after that another sender takes over from a dead one
DELIVERY_RETENTION = timedelta(days=30)
# The pauses before each further attempt, as the specification proposes. After the last attempt the
# delivery has failed.
RETRY_DELAYS_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
HTTP_GONE = 410
# The reason of a failure is not sent: a provider's words may repeat parts of the conversation.
PRIVATE_FIELDS = ("detail", "reason")

# A delivery that was tried in vain since the address worked last.
_HAS_FAILED = Q(deliveries__status=WebhookDelivery.Status.PENDING, deliveries__error__gt="")
# An event loop holds its tasks only weakly; without this set a running task could be collected.
_delivery_tasks: set[asyncio.Task[None]] = set()


def generate_secret() -> str:
    """Return a new signing secret in the form of Standard Webhooks: `whsec_` and base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def queue_deliveries(session_id: UUID, events: Iterable[Event]) -> None:
    """Store a delivery for each of the owner's webhooks that wants one of these events.

    Where an address has just failed, the delivery waits with those that failed: not each event is
    sent to it at once. This joins the caller's transaction, so an event that is rolled back is
    never announced.
    """
    webhook_events = [event for event in events if event.name in WEBHOOK_EVENTS]
    if not webhook_events:
        return
    active_webhooks = Webhook.objects.filter(is_active=True, owner__chat_sessions=session_id)
    if not active_webhooks.exists():  # nearly always, and three times as quickly asked
        return
    active_webhooks = active_webhooks.filter(owner__is_active=True).annotate(
        paused_until=Min("deliveries__next_attempt_at", filter=_HAS_FAILED)
    )
    now = timezone.now()
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=webhook,
            event=event.name,
            payload=_build_payload(event),
            next_attempt_at=webhook.paused_until or now,
        )
        for webhook in list(active_webhooks)
        for event in webhook_events
        if not webhook.events or event.name in webhook.events
    )


async def start_due_deliveries() -> list[asyncio.Task[None]]:
    """Start to send due deliveries, at most MAX_CONCURRENT_DELIVERIES. Returns their tasks.

    The caller need not wait for the tasks before it asks again, so one slow address delays no
    other. TIMEOUT_SECONDS limits how many are under way.
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
    """Delete deliveries older than DELIVERY_RETENTION, pending ones too. Returns how many."""
    return WebhookDelivery.objects.filter(
        created_at__lt=read_clock() - DELIVERY_RETENTION
    ).delete()[0]


def retry_deliveries(deliveries: QuerySet[WebhookDelivery]) -> int:
    """Make these deliveries due now, with all attempts ahead of them. Returns how many."""
    return deliveries.update(
        status=WebhookDelivery.Status.PENDING,
        attempts=0,
        next_attempt_at=timezone.now(),
        error="",
    )


def _build_payload(event: Event) -> dict[str, object]:
    """Return the body to send: ids, numbers and names, but no text of the conversation."""
    public_data = {key: value for key, value in event.data.items() if key not in PRIVATE_FIELDS}
    return {
        "type": event.name,
        "timestamp": timezone.now().isoformat(),
        "data": {"session": str(event.session), "seq": event.seq, **public_data},
    }


def _claim_due_deliveries() -> list[WebhookDelivery]:
    """Claim some due deliveries for this process, and return them.

    Owners take turns (each owner's first delivery, then each owner's second ...), so that an owner
    whose addresses answer slowly does not delay the others.
    """
    now = timezone.now()
    due_deliveries = WebhookDelivery.objects.filter(
        status=WebhookDelivery.Status.PENDING,
        next_attempt_at__lte=now,
        webhook__is_active=True,
        webhook__owner__is_active=True,
    )
    if not due_deliveries.exists():
        return []  # all that an idle server needs to know, in a quarter of the time
    owner_rank = Window(
        RowNumber(), partition_by=F("webhook__owner"), order_by=F("next_attempt_at").asc()
    )
    next_deliveries = (
        due_deliveries.annotate(owner_rank=owner_rank)
        .select_related("webhook")
        .order_by("owner_rank", "next_attempt_at")[:MAX_CONCURRENT_DELIVERIES]
    )
    return [delivery for delivery in next_deliveries if _claim_delivery(delivery, now)]


def _claim_delivery(delivery: WebhookDelivery, now: datetime) -> bool:
    """Count one more attempt for this process. Returns False when another process was faster."""
    # The number of attempts is the fence: of several processes that read the same row, only one
    # UPDATE still finds it. The claim ends by itself, so a sender that dies blocks nothing.
    row = WebhookDelivery.objects.filter(
        pk=delivery.pk, attempts=delivery.attempts, status=WebhookDelivery.Status.PENDING
    )
    if delivery.attempts > len(RETRY_DELAYS_SECONDS):
        # Every attempt was claimed, and the last sender died before it recorded the result.
        row.update(
            status=WebhookDelivery.Status.FAILED, error="The last attempt was not completed."
        )
        return False
    delivery.attempts += 1
    return bool(row.update(attempts=delivery.attempts, next_attempt_at=now + CLAIM_DURATION))


async def _send_delivery(delivery: WebhookDelivery) -> None:
    import httpx2

    status, error_text = None, ""
    try:
        status = await _post_delivery(delivery)
    except (NotReached, TimeoutError) as refusal:
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
    """Send one signed request, and return the HTTP status of the answer."""
    import httpx2

    body = json.dumps(delivery.payload, separators=(",", ":"), ensure_ascii=False)
    headers = {
        "Content-Type": "application/json",
        "User-Agent": outbound.build_user_agent("webhooks"),
        **_sign_body(delivery, body),
    }
    async with asyncio.timeout(TIMEOUT_SECONDS):
        url = httpx2.URL(delivery.webhook.url)
        async with outbound.open_response(
            url,
            method="POST",
            headers=headers,
            content=body.encode(),
            step_seconds=TIMEOUT_SECONDS,
        ) as response:
            return response.status_code


def _sign_body(delivery: WebhookDelivery, body: str) -> dict[str, str]:
    """Return the three headers of Standard Webhooks, with a symmetric (v1) signature."""
    delivery_id = str(delivery.pk)
    now = timezone.now()
    signer = WebhookSigner(keys.decrypt(delivery.webhook.secret))
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": signer.sign(delivery_id, now, body),
    }


def _record_attempt(delivery: WebhookDelivery, status: int | None, error: str) -> None:
    """Store the result of an attempt.

    Any 2xx status is a delivery. Everything else, redirects too, is tried again later. 410 (Gone)
    means that the address wants no more, so its webhook is switched off.
    """
    now = timezone.now()
    is_delivered = status is not None and 200 <= status < 300
    is_last_attempt = delivery.attempts > len(RETRY_DELAYS_SECONDS)
    fields: dict[str, object] = {"response_status": status, "error": error}
    if not is_delivered and not error:
        fields["error"] = f"It answered {status}."
    if is_delivered:
        fields |= {"status": WebhookDelivery.Status.DELIVERED, "delivered_at": now}
    elif is_last_attempt or status == HTTP_GONE:
        fields["status"] = WebhookDelivery.Status.FAILED
    else:
        delay = timedelta(seconds=RETRY_DELAYS_SECONDS[delivery.attempts - 1])
        fields["next_attempt_at"] = now + delay
    others = WebhookDelivery.objects.filter(
        webhook=delivery.webhook_id, status=WebhookDelivery.Status.PENDING
    ).exclude(pk=delivery.pk)
    with transaction.atomic():
        WebhookDelivery.objects.filter(pk=delivery.pk, attempts=delivery.attempts).update(**fields)
        # An address that failed is left alone for a while by all deliveries, and one that works
        # again gets what waits.
        if is_delivered:
            others.exclude(error="").update(error="")
            others.filter(attempts=0).update(next_attempt_at=now)
        elif next_attempt_at := fields.get("next_attempt_at"):
            others.filter(next_attempt_at__lt=next_attempt_at).update(
                next_attempt_at=next_attempt_at
            )
        if status == HTTP_GONE:
            Webhook.objects.filter(pk=delivery.webhook_id).update(is_active=False)
