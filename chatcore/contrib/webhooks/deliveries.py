"""Send the owner's webhooks when a turn or a compaction has ended, as Standard Webhooks describes.

The row of a delivery is the outbox: it is written with the event itself, and sent afterwards.
"""

import asyncio
import base64
import json
import logging
import secrets
from collections import Counter
from collections.abc import Collection, Iterable
from contextlib import suppress
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Count, Exists, F, Min, OuterRef, Q, QuerySet, Subquery
from django.utils import timezone
from standardwebhooks import Webhook as WebhookSigner

from chatcore.base.databases.batches import delete_in_batches
from chatcore.base.databases.clock import read_clock
from chatcore.base.net import outbound
from chatcore.base.net.address_guard import NotReached
from chatcore.base.threads import keep_trying, outlive_errors, run_in_thread
from chatcore.contrib.webhooks.models import ACTIVE_WEBHOOKS, Webhook, WebhookDelivery
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
# The requests under way in a process, for one user and to one address. An address that hangs holds
# some of these places, so others need places that it cannot take: those who have no request under
# way, however many people have slow addresses and a backlog.
MAX_CONCURRENT_DELIVERIES = 100
PLACES_FOR_OTHERS = 50
MAX_CONCURRENT_OF_OWNER = 8
MAX_CONCURRENT_OF_WEBHOOK = 4
POLL_SECONDS = 5.0
SCAN_ROWS = 100  # due deliveries of a kind that are looked at in one round
CLAIM_DURATION = timedelta(seconds=60)  # after that another sender takes over from a dead one
DELIVERY_RETENTION = timedelta(days=30)
# The pauses before each further attempt, as the specification proposes. After the last attempt the
# delivery has failed.
RETRY_DELAYS_SECONDS = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400)
HTTP_GONE = 410
# The reason of a failure is not sent: a provider's words may repeat parts of the conversation.
PRIVATE_FIELDS = ("detail", "reason")

_PENDING = Q(status=WebhookDelivery.Status.PENDING)


def generate_secret() -> str:
    """Return a new signing secret in the form of Standard Webhooks: `whsec_` and base64."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def queue_deliveries(session_id: UUID, events: Iterable[Event]) -> None:
    """Store a delivery for each of the owner's webhooks that wants one of these events.

    This joins the caller's transaction, so an event that is rolled back is never announced.
    """
    webhook_events = [event for event in events if event.name in WEBHOOK_EVENTS]
    if not (webhook_events and ACTIVE_WEBHOOKS.may_exist()):
        return
    active_webhooks = Webhook.objects.filter(is_active=True, owner__chat_sessions=session_id)
    if not active_webhooks.exists():  # nearly always, and three times as quickly asked
        return
    now = read_clock()
    # A webhook that is deleted now would take its deliveries with it, but not those that another
    # transaction has not committed: their foreign key would then fail at the end of the turn.
    locked_webhooks = active_webhooks.filter(owner__is_active=True).order_by("pk")
    locked_webhooks = locked_webhooks.select_for_update(no_key=True, of=("self",))
    WebhookDelivery.objects.bulk_create(
        WebhookDelivery(
            webhook=webhook,
            event=event.name,
            payload=_build_payload(event),
            next_attempt_at=now,
            created_at=now,
        )
        for webhook in locked_webhooks
        for event in webhook_events
        if not webhook.events or event.name in webhook.events
    )
    transaction.on_commit(lambda: _sender.wake(), robust=True)


class DeliverySender:
    """Sends deliveries on one event loop, as many at once as there are places."""

    def __init__(self) -> None:
        # Also the reference that each task needs: an event loop holds its tasks only weakly.
        self._in_flight: dict[asyncio.Task[None], Webhook] = {}
        self._wake_event = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None  # while it runs

    async def run(self) -> None:
        """Send for as long as the process lives.

        A new delivery of this process, and a place that is free again, are noticed at once; what
        other processes queued and what is due by time, within POLL_SECONDS.
        """
        self._loop = asyncio.get_running_loop()
        try:
            while True:
                self._wake_event.clear()
                await self.start_due_deliveries()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake_event.wait(), POLL_SECONDS)
        finally:
            self._loop = None

    @property
    def is_running(self) -> bool:
        return self._loop is not None

    def wake(self) -> None:
        """Look for due deliveries now, if this process sends any. Called by any thread."""
        loop = self._loop
        if loop is not None:
            loop.call_soon_threadsafe(self._wake_event.set)

    async def start_due_deliveries(self) -> list[asyncio.Task[None]]:
        """Start to send due deliveries, as far as there are places. Returns their tasks."""
        claimed = await run_in_thread(_claim_due_deliveries, list(self._in_flight.values()))
        tasks = [asyncio.create_task(_send_delivery(delivery)) for delivery in claimed]
        for task, delivery in zip(tasks, claimed, strict=True):
            self._in_flight[task] = delivery.webhook
            task.add_done_callback(self._free_place)
        return tasks

    def _free_place(self, task: asyncio.Task[None]) -> None:
        del self._in_flight[task]
        self._wake_event.set()


_sender = DeliverySender()
send_deliveries = _sender.run
start_due_deliveries = _sender.start_due_deliveries


def delete_old_deliveries() -> int:
    """Delete deliveries older than DELIVERY_RETENTION, pending ones too. Returns how many."""
    return delete_in_batches(
        WebhookDelivery.objects.filter(created_at__lt=read_clock() - DELIVERY_RETENTION)
    )


def measure_backlog() -> tuple[int, float]:
    """Return how many deliveries have not ended, and the seconds since the oldest one's event."""
    pending = WebhookDelivery.objects.filter(status=WebhookDelivery.Status.PENDING)
    row = pending.aggregate(count=Count("*"), oldest_at=Min("created_at"))
    oldest_at = row["oldest_at"]
    return row["count"], (timezone.now() - oldest_at).total_seconds() if oldest_at else 0.0


def retry_deliveries(deliveries: QuerySet[WebhookDelivery]) -> int:
    """Make these deliveries due now, with all attempts ahead of them. Returns how many."""
    webhook_ids = list(deliveries.order_by().values_list("webhook", flat=True).distinct())
    count = deliveries.update(
        status=WebhookDelivery.Status.PENDING, attempts=0, next_attempt_at=read_clock(), error=""
    )
    Webhook.objects.filter(pk__in=webhook_ids).update(paused_until=None)
    return count


def _build_payload(event: Event) -> dict[str, object]:
    """Return the body to send: ids, numbers and names, but no text of the conversation."""
    public_data = {key: value for key, value in event.data.items() if key not in PRIVATE_FIELDS}
    return {
        "type": event.name,
        "timestamp": timezone.now().isoformat(),
        "data": {"session": str(event.session), "seq": event.seq, **public_data},
    }


def _claim_due_deliveries(in_flight: Collection[Webhook] = ()) -> list[WebhookDelivery]:
    """Claim due deliveries for this process, and return them.

    `in_flight` has the webhook of each request that is under way. Each round claims at most one
    first attempt of each webhook, so no backlog keeps another webhook waiting.
    """
    claimed: list[WebhookDelivery] = []
    while True:
        taken = [*in_flight, *(delivery.webhook for delivery in claimed)]
        chosen = _choose_deliveries(taken)
        newly_claimed = _claim_deliveries(chosen) if chosen else []
        if not newly_claimed:
            return claimed
        claimed += newly_claimed


def _choose_deliveries(taken: Collection[Webhook]) -> list[UUID]:
    """Return the keys of due deliveries for which there are places beside those taken."""
    free = MAX_CONCURRENT_DELIVERIES - len(taken)
    if free <= 0:
        return []
    of_owner = Counter(webhook.owner_id for webhook in taken)
    of_webhook = Counter(webhook.pk for webhook in taken)
    chosen: list[UUID] = []
    due = _list_due_deliveries(of_owner, of_webhook, owner_limit=_limit_owners(free))
    for delivery_id, webhook_id, owner_id in due:
        if of_owner[owner_id] >= _limit_owners(free - len(chosen)):
            continue
        if of_webhook[webhook_id] >= MAX_CONCURRENT_OF_WEBHOOK:
            continue
        of_owner[owner_id] += 1
        of_webhook[webhook_id] += 1
        chosen.append(delivery_id)
    return chosen[:free]


def _limit_owners(free: int) -> int:
    """Return how many places an owner may have, while so many are free."""
    return MAX_CONCURRENT_OF_OWNER if free > PLACES_FOR_OTHERS else 1


def _list_due_deliveries(
    of_owner: Counter[int], of_webhook: Counter[UUID], *, owner_limit: int
) -> list[tuple[UUID, UUID, int]]:
    """Return due deliveries as (delivery, webhook, owner), the longest due first.

    Those are each webhook's oldest first attempt, unless the webhook is paused, and further
    attempts. A webhook and an owner without a free place are left out.
    """
    now = read_clock()
    full_owners = [key for key, count in of_owner.items() if count >= owner_limit]
    full_webhooks = [key for key, count in of_webhook.items() if count >= MAX_CONCURRENT_OF_WEBHOOK]
    webhooks = (
        Webhook.objects.filter(is_active=True, owner__is_active=True)
        .exclude(owner__in=full_owners)
        .exclude(pk__in=full_webhooks)
    )
    first_attempts = WebhookDelivery.objects.filter(
        _PENDING, webhook=OuterRef("pk"), attempts=0, next_attempt_at__lte=now
    ).order_by("next_attempt_at")
    open_webhooks = (
        webhooks.filter(Q(paused_until=None) | Q(paused_until__lte=now))
        .filter(Exists(first_attempts))
        .annotate(
            delivery=Subquery(first_attempts.values("pk")[:1]),
            due_at=Subquery(first_attempts.values("next_attempt_at")[:1]),
        )
        .order_by("due_at")
        .values_list("due_at", "delivery", "pk", "owner")
    )
    further_attempts = (
        WebhookDelivery.objects.filter(
            _PENDING, attempts__gt=0, next_attempt_at__lte=now, webhook__in=webhooks
        )
        .order_by("next_attempt_at")
        .values_list("next_attempt_at", "pk", "webhook", "webhook__owner")
    )
    rows = [*open_webhooks[:SCAN_ROWS], *further_attempts[:SCAN_ROWS]]
    rows.sort(key=lambda row: row[0])
    return [(delivery, webhook, owner) for _, delivery, webhook, owner in rows]


def _claim_deliveries(delivery_ids: Collection[UUID]) -> list[WebhookDelivery]:
    """Count one more attempt of these deliveries; return those that no other process has taken.

    The claim ends by itself, so a sender that dies blocks nothing.
    """
    now = read_clock()
    claimed_until = now + CLAIM_DURATION
    with transaction.atomic():
        deliveries = list(
            WebhookDelivery.objects.filter(_PENDING, pk__in=delivery_ids, next_attempt_at__lte=now)
            .select_related("webhook")
            .order_by("pk")
            .select_for_update(skip_locked=True, of=("self",))
        )
        over = [each for each in deliveries if each.attempts > len(RETRY_DELAYS_SECONDS)]
        claimed = [each for each in deliveries if each not in over]
        if over:
            # Every attempt was claimed, and the last sender died before it recorded the result.
            WebhookDelivery.objects.filter(pk__in=[each.pk for each in over]).update(
                status=WebhookDelivery.Status.FAILED, error="The last attempt was not completed."
            )
        WebhookDelivery.objects.filter(pk__in=[each.pk for each in claimed]).update(
            attempts=F("attempts") + 1, next_attempt_at=claimed_until
        )
    for delivery in claimed:  # as the rows are now, which were locked
        delivery.attempts += 1
        delivery.next_attempt_at = claimed_until
    return claimed


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
    # A delivery without a result would be sent again: the database is asked until it has stored it.
    with outlive_errors(f"the result of delivery {delivery.pk} could not be stored"):
        await keep_trying(lambda: run_in_thread(_record_attempt, delivery, status, error_text))


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
    now = read_clock()
    is_delivered = status is not None and 200 <= status < 300
    is_last_attempt = delivery.attempts > len(RETRY_DELAYS_SECONDS)
    fields: dict[str, object] = {"response_status": status, "error": error}
    paused_until = None
    if not is_delivered and not error:
        fields["error"] = f"It answered {status}."
    if is_delivered:
        fields |= {"status": WebhookDelivery.Status.DELIVERED, "delivered_at": now}
    elif is_last_attempt or status == HTTP_GONE:
        fields["status"] = WebhookDelivery.Status.FAILED
    else:
        paused_until = now + timedelta(seconds=RETRY_DELAYS_SECONDS[delivery.attempts - 1])
        fields["next_attempt_at"] = paused_until
    # Two statements without a transaction: each locks one row and waits for no second one, so there
    # is no deadlock with a deletion of both. The claim's end is a part of the fence, because
    # an operator who sends a delivery again sets the number of attempts back.
    WebhookDelivery.objects.filter(
        _PENDING,
        pk=delivery.pk,
        attempts=delivery.attempts,
        next_attempt_at=delivery.next_attempt_at,
    ).update(**fields)
    _note_address(delivery.webhook, status, is_delivered=is_delivered, paused_until=paused_until)


def _note_address(
    webhook: Webhook, status: int | None, *, is_delivered: bool, paused_until: datetime | None
) -> None:
    """Pause an address that failed, let one that works have what waits, switch off one that ended.

    Nothing is noted of an address that its owner has changed meanwhile.
    """
    rows = Webhook.objects.filter(pk=webhook.pk, url=webhook.url)
    if is_delivered:
        rows.filter(paused_until__isnull=False).update(paused_until=None)
    elif status == HTTP_GONE:
        rows.update(is_active=False)
    elif paused_until:
        is_shorter = Q(paused_until=None) | Q(paused_until__lt=paused_until)
        rows.filter(is_shorter).update(paused_until=paused_until)
