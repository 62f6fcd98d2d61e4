"""Webhooks over real sockets: signed by Standard Webhooks, delivered once, retried and guarded."""

import asyncio
import base64
import hashlib
import hmac
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import LazySettings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.db.models import Sum
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from chatcore.base.threads import run_in_thread
from chatcore.contrib.webhooks import deliveries as outbox
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.models import Session
from models_registry import keys
from tests.support.database import wait_for_blocked_connection
from tests.support.events import append_events
from tests.support.local_server import LocalHandler, LocalServer
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.statements import note_statements
from tests.support.waiting import wait_until

HOOKS = "/api/v1/webhooks"
pytestmark = pytest.mark.django_db


class Listener:
    """An address of the owner's; answers with `status`, below /slow only once it may `go`."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status, self.go = 204, threading.Event()
        self.statuses: dict[str, int] = {}  # of single paths
        listener = self

        class Handler(LocalHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.path == "/slow":
                    listener.go.wait(20)
                listener.got.append(({**self.headers, "path": self.path}, body))
                self.send_response(listener.statuses.get(self.path, listener.status))
                self.send_header("Content-Length", "0")
                self.end_headers()

        self.server = LocalServer(Handler)
        self.host = self.server.host


@pytest.fixture
def listener(settings: LazySettings) -> Iterator[Listener]:
    listener = Listener()
    settings.CHATCORE = {**settings.CHATCORE, "FETCH_ALLOW_HOSTS": [listener.host]}
    with listener.server:
        yield listener


def hooked(
    api: APIClient, listener: Listener, place: str = "told", **fields: Any
) -> dict[str, Any]:
    made = api.post(HOOKS, {"url": f"http://{listener.host}/{place}", **fields})
    assert made.status_code == 201, made.json()
    return dict(made.json())


def deliver() -> int:
    """Send what is due, to its end; how many."""

    async def to_its_end() -> int:
        return len(await asyncio.gather(*await outbox.start_due_deliveries()))

    return asyncio.run(to_its_end())


@pytest.mark.django_db(transaction=True)
def test_a_finished_turn_is_told_and_signed(
    api: APIClient, listener: Listener, session: Session, scripted: ScriptedModel
) -> None:
    hook = hooked(api, listener)
    scripted.script(Reply(text="Hello."))
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hi"})
    assert answer.status_code == 201
    assert deliver() == 1
    headers, body = listener.got[0]
    told = json.loads(body)
    assert told["type"] == "turn.completed"
    assert told["data"]["session"] == str(session.pk)
    assert told["data"]["message"] == answer.json()["assistant_message"]["id"]
    assert b"Hello." not in body
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(hook["secret"].removeprefix("whsec_"))
    assert (
        headers["webhook-signature"]
        == "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    )
    assert deliver() == 0
    assert api.get(f"{HOOKS}/{hook['id']}/deliveries").json()["results"][0]["status"] == "delivered"


@pytest.mark.django_db(transaction=True)
def test_a_failure_is_told_by_its_type_and_not_in_words(
    api: APIClient, listener: Listener, session: Session, scripted: ScriptedModel
) -> None:
    hooked(api, listener)
    scripted.script(Reply(status=400, text="I will not speak of the treasure."))
    answer = api.post(
        f"/api/v1/sessions/{session.pk}/messages", {"content": "Where is the treasure?"}
    )
    assert "treasure" in answer.json()["detail"]
    append_events(
        session.pk, ("compaction.failed", {"run": "1", "reason": "The treasure is too long."})
    )
    assert deliver() == 2
    bodies = [json.loads(body) for _, body in listener.got]
    assert {body["type"]: body["data"].get("type") for body in bodies} == {
        "turn.failed": "provider_rejected",
        "compaction.failed": None,
    }
    assert "treasure" not in str(bodies)


@pytest.mark.django_db(transaction=True)
def test_an_address_that_does_not_answer_keeps_no_other_waiting(
    api: APIClient, listener: Listener, session: Session
) -> None:
    hooked(api, listener, "slow", events=["turn.completed"])
    hooked(api, listener, "quick", events=["turn.cancelled"])
    append_events(session.pk, ("turn.completed", {"turn": "1"}))

    async def beside() -> None:
        slow = await outbox.start_due_deliveries()
        await run_in_thread(append_events, session.pk, ("turn.cancelled", {"turn": "2"}))
        await asyncio.gather(*await outbox.start_due_deliveries())
        assert [json.loads(body)["type"] for _, body in listener.got] == ["turn.cancelled"]
        listener.go.set()
        await asyncio.gather(*slow)

    asyncio.run(beside())
    assert [json.loads(body)["type"] for _, body in listener.got] == [
        "turn.cancelled",
        "turn.completed",
    ]


@pytest.mark.django_db(transaction=True)
def test_a_refused_delivery_is_tried_again_later_and_given_up_at_last(
    api: APIClient, listener: Listener, session: Session
) -> None:
    hook = hooked(api, listener)
    listener.status = 500
    append_events(session.pk, ("compaction.failed", {"run": "1", "reason": "No."}))
    waits = []
    for _ in range(len(outbox.RETRY_DELAYS_SECONDS)):
        assert deliver() == 1
        row = WebhookDelivery.objects.get()
        waits.append(round((row.next_attempt_at - timezone.now()).total_seconds() / 5))
        assert deliver() == 0
        WebhookDelivery.objects.update(next_attempt_at=timezone.now())
    assert waits[:3] == [1, 60, 360]
    assert deliver() == 1
    (told,) = api.get(f"{HOOKS}/{hook['id']}/deliveries").json()["results"]
    assert (told["status"], told["response_status"], told["attempts"]) == (
        "failed",
        500,
        len(outbox.RETRY_DELAYS_SECONDS) + 1,
    )
    assert len({headers["webhook-id"] for headers, _ in listener.got}) == 1


@pytest.mark.django_db(transaction=True)
def test_an_address_that_failed_is_left_alone_until_it_works_again(
    api: APIClient, listener: Listener, session: Session
) -> None:
    hooked(api, listener)
    listener.status = 500
    for number in range(3):
        append_events(session.pk, ("turn.completed", {"turn": str(number)}))
    assert deliver() == 3
    append_events(session.pk, ("turn.completed", {"turn": "later"}))
    assert deliver() == 0
    assert len(listener.got) == 3
    listener.status = 204
    first = WebhookDelivery.objects.exclude(error="").first()
    assert first is not None
    WebhookDelivery.objects.filter(pk=first.pk).update(next_attempt_at=timezone.now())
    assert deliver() == 1
    append_events(session.pk, ("turn.completed", {"turn": "last"}))
    assert deliver() == 2
    assert {json.loads(body)["data"]["turn"] for _, body in listener.got[-2:]} == {"later", "last"}


def test_a_host_gets_no_event_more_than_five_times(api: APIClient) -> None:
    urls = [f"https://one.example/{number}" for number in range(5)]
    assert {api.post(HOOKS, {"url": url}).status_code for url in urls} == {201}
    refused = api.post(HOOKS, {"url": "https://ONE.example:8443/x"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (400, "url")
    other = api.post(HOOKS, {"url": "https://two.example/"}).json()
    assert api.patch(f"{HOOKS}/{other['id']}", {"url": "https://one.example/x"}).status_code == 400
    assert api.patch(f"{HOOKS}/{other['id']}", {"is_active": False}).status_code == 200


def store_webhook(session: Session, url: str) -> None:
    """Store a webhook with an address that REST refuses: its name led elsewhere once."""
    Webhook.objects.create(
        owner=session.owner, url=url, secret=keys.encrypt(outbox.generate_secret())
    )


@pytest.mark.django_db(transaction=True)
def test_no_delivery_tells_which_names_exist_within(session: Session) -> None:
    for host in ("localhost", "no-such-host.invalid", "10.0.0.1"):
        store_webhook(session, f"http://{host}/")
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    deliver()
    rows = WebhookDelivery.objects.select_related("webhook")
    reasons = {row.error.replace(row.webhook.url[7:-1], "X") for row in rows}
    assert reasons == {"X is not known, or not on the public internet, so nothing is sent to it."}


@pytest.mark.django_db(transaction=True)
def test_an_address_that_is_gone_is_told_no_more(
    api: APIClient, listener: Listener, session: Session
) -> None:
    hook = hooked(api, listener)
    listener.status = 410
    append_events(session.pk, ("turn.failed", {"turn": "1"}))
    deliver()
    append_events(session.pk, ("turn.failed", {"turn": "2"}))
    assert deliver() == 0
    assert api.get(f"{HOOKS}/{hook['id']}").json()["is_active"] is False


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1:9/", "http://169.254.169.254/latest", "http://[::1]/", "http://10.0.0.1/"],
)
def test_an_address_within_is_never_reached(session: Session, url: str) -> None:
    store_webhook(session, url)
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    assert deliver() == 1
    row = WebhookDelivery.objects.get()
    assert (row.status, row.response_status) == ("pending", None)
    assert "not" in row.error


@pytest.mark.django_db(transaction=True)
def test_two_senders_tell_it_once(api: APIClient, listener: Listener, session: Session) -> None:
    hooked(api, listener)
    append_events(session.pk, *[("turn.completed", {"turn": str(number)}) for number in range(5)])
    threads = [threading.Thread(target=deliver) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    deliver()
    assert len(listener.got) == 5


@pytest.mark.django_db(transaction=True)
def test_what_a_dead_sender_claimed_is_sent_by_another(
    api: APIClient, listener: Listener, session: Session
) -> None:
    hooked(api, listener)
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    assert len(outbox._claim_due_deliveries()) == 1
    assert deliver() == 0
    WebhookDelivery.objects.update(next_attempt_at=timezone.now() - timedelta(seconds=1))
    assert deliver() == 1
    assert len(listener.got) == 1


def test_only_the_events_asked_for_are_told_and_only_to_the_owner(
    api: APIClient, session: Session, as_user: Callable[[User], APIClient]
) -> None:
    api.post(HOOKS, {"url": "https://example.com/a", "events": ["compaction.applied"]})
    as_user(User.objects.create_user("bob")).post(HOOKS, {"url": "https://example.com/b"})
    append_events(
        session.pk,
        ("turn.completed", {"turn": "1"}),
        ("compaction.applied", {"run": "1"}),
        ("context.usage", {}),
    )
    assert [row.event for row in WebhookDelivery.objects.all()] == ["compaction.applied"]


def test_an_operator_sees_deliveries_and_sends_them_again(
    api: APIClient, session: Session, client: Client
) -> None:
    api.post(HOOKS, {"url": "https://example.com/"})
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    WebhookDelivery.objects.update(status="failed", attempts=10)
    client.force_login(User.objects.create_superuser("root"))
    page = client.get("/admin/webhooks/webhookdelivery/")
    assert b"turn.completed" in page.content
    row = WebhookDelivery.objects.get()
    client.post(
        "/admin/webhooks/webhookdelivery/",
        {"action": "send_again", "_selected_action": [str(row.pk)]},
    )
    row.refresh_from_db()
    assert (row.status, row.attempts) == ("pending", 0)


def test_a_deactivated_owner_is_told_nothing(api: APIClient, session: Session, user: User) -> None:
    api.post(HOOKS, {"url": "https://example.com/"})
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    User.objects.filter(pk=user.pk).update(is_active=False)
    append_events(session.pk, ("turn.completed", {"turn": "2"}))
    assert WebhookDelivery.objects.count() == 1
    assert outbox._claim_due_deliveries() == []


def test_a_delivery_whose_senders_all_died_has_failed(api: APIClient, session: Session) -> None:
    api.post(HOOKS, {"url": "https://example.com/"})
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    tries = 0
    while outbox._claim_due_deliveries():
        tries += 1
        WebhookDelivery.objects.update(next_attempt_at=timezone.now())
    assert tries == len(outbox.RETRY_DELAYS_SECONDS) + 1
    assert WebhookDelivery.objects.get().status == "failed"


def test_no_user_and_no_address_takes_the_places_of_others(
    api: APIClient, session: Session, as_user: Callable[[User], APIClient]
) -> None:
    bob = User.objects.create_user("bob")
    for client, count in ((api, 4), (as_user(bob), 1)):
        for number in range(count):
            client.post(HOOKS, {"url": f"https://example.com/{number}"})
    events = [("turn.completed", {"turn": str(number)}) for number in range(50)]
    append_events(session.pk, *events)
    append_events(Session.objects.create(owner=bob).pk, *events)
    claimed = outbox._claim_due_deliveries()
    owners = Counter(delivery.webhook.owner_id for delivery in claimed)
    assert owners == {
        session.owner_id: outbox.MAX_CONCURRENT_OF_OWNER,
        bob.pk: outbox.MAX_CONCURRENT_OF_WEBHOOK,
    }
    addresses = Counter(delivery.webhook_id for delivery in claimed)
    assert max(addresses.values()) <= outbox.MAX_CONCURRENT_OF_WEBHOOK
    assert outbox._claim_due_deliveries([each.webhook for each in claimed]) == []
    assert sum(owners.values()) < outbox.MAX_CONCURRENT_DELIVERIES


def test_users_with_a_backlog_leave_places_for_others(
    as_user: Callable[[User], APIClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "MAX_CONCURRENT_DELIVERIES", 20)
    monkeypatch.setattr(outbox, "PLACES_FOR_OTHERS", 10)
    users = [User.objects.create_user(name) for name in ("ann", "bob", "cem", "dora")]
    for user in users:
        for number in range(3):
            as_user(user).post(HOOKS, {"url": f"https://example.com/{number}"})
    *busy, dora = [Session.objects.create(owner=user) for user in users]
    for session in busy:
        append_events(session.pk, *[("turn.completed", {"turn": str(n)}) for n in range(50)])
    in_flight = [delivery.webhook for delivery in outbox._claim_due_deliveries()]
    assert {webhook.owner_id for webhook in in_flight} == {session.owner_id for session in busy}
    append_events(dora.pk, ("turn.completed", {"turn": "1"}))
    [delivery] = outbox._claim_due_deliveries(in_flight)
    assert delivery.webhook.owner_id == dora.owner_id


@pytest.mark.django_db(transaction=True)
def test_one_delivery_that_breaks_does_not_break_the_others(
    api: APIClient, listener: Listener, session: Session
) -> None:
    broken = hooked(api, listener)
    hooked(api, listener)
    Webhook.objects.filter(pk=broken["id"]).update(secret=keys.encrypt("whsec_a"))
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    assert deliver() == 2
    assert len(listener.got) == 1
    assert WebhookDelivery.objects.get(webhook=broken["id"]).error == "It could not be sent: Error."


def test_what_waits_for_an_address_that_was_switched_off_is_forgotten_in_time(
    api: APIClient, session: Session
) -> None:
    api.post(HOOKS, {"url": "https://example.com/"})
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    WebhookDelivery.objects.update(
        created_at=timezone.now() - outbox.DELIVERY_RETENTION - timedelta(days=1)
    )
    assert outbox.delete_old_deliveries() == 1


def run_sender(sender: outbox.DeliverySender, stop: threading.Event) -> None:
    """Send as a process does until `stop`."""

    async def run_until_stopped() -> None:
        task = asyncio.create_task(sender.run())
        await asyncio.to_thread(stop.wait)
        task.cancel()

    asyncio.run(run_until_stopped())


@pytest.mark.django_db(transaction=True)
def test_two_processes_send_a_backlog_without_deadlocks_in_a_few_statements(
    api: APIClient, listener: Listener, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    hooked(api, listener, "works")
    broken = hooked(api, listener, "broken")
    listener.statuses = {"/broken": 404}
    count = 40
    events = [("turn.completed", {"turn": str(number)}) for number in range(count)]
    append_events(session.pk, *events)
    stop = threading.Event()
    with note_statements() as statements:
        senders = [
            threading.Thread(target=run_sender, args=(outbox.DeliverySender(), stop))
            for _ in range(2)
        ]
        for sender in senders:
            sender.start()
        working = WebhookDelivery.objects.exclude(webhook=broken["id"])
        wait_until(lambda: not working.exclude(status="delivered").exists())
        stop.set()
        for sender in senders:
            sender.join()
    assert statements.errors == []
    got = Counter(
        headers["webhook-id"] for headers, _ in listener.got if headers["path"] == "/works"
    )
    assert len(got) == count
    assert set(got.values()) == {1}
    assert "could not be stored" not in caplog.text
    tried = WebhookDelivery.objects.filter(webhook=broken["id"]).aggregate(Sum("attempts"))
    # Of an attempt: its claim, its result and its webhook's pause.
    assert statements.count("UPDATE") <= 3 * (count + tried["attempts__sum"])


@pytest.mark.django_db(transaction=True)
def test_a_new_delivery_and_a_free_place_are_noticed_at_once(
    api: APIClient, listener: Listener, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "POLL_SECONDS", 3_600.0)
    hooked(api, listener)
    stop = threading.Event()
    sender = outbox.DeliverySender()
    monkeypatch.setattr(outbox, "_sender", sender)
    thread = threading.Thread(target=run_sender, args=(sender, stop))
    thread.start()
    count = 3 * outbox.MAX_CONCURRENT_OF_WEBHOOK
    try:
        wait_until(lambda: sender.is_running)
        append_events(session.pk, *[("turn.completed", {"turn": "1"})] * count)
        wait_until(lambda: len(listener.got) == count)
    finally:
        stop.set()
        thread.join()


@pytest.mark.django_db(transaction=True)
def test_a_result_is_stored_by_the_claim_alone_that_sent_it(
    api: APIClient, session: Session
) -> None:
    api.post(HOOKS, {"url": "https://example.com/"})
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    [late] = outbox._claim_due_deliveries()
    outbox.retry_deliveries(WebhookDelivery.objects.all())
    [current] = outbox._claim_due_deliveries()
    assert current.attempts == late.attempts
    outbox._record_attempt(late, 500, "")
    assert WebhookDelivery.objects.get().error == ""
    outbox._record_attempt(current, 204, "")
    assert WebhookDelivery.objects.get().status == "delivered"


@pytest.mark.django_db(transaction=True)
def test_what_becomes_of_an_address_that_was_changed_meanwhile_is_not_noted(
    api: APIClient, session: Session
) -> None:
    hook = api.post(HOOKS, {"url": "https://example.com/old"}).json()
    append_events(session.pk, ("turn.completed", {"turn": "1"}))
    [delivery] = outbox._claim_due_deliveries()
    api.patch(f"{HOOKS}/{hook['id']}", {"url": "https://example.com/new"})
    outbox._record_attempt(delivery, 410, "")
    assert Webhook.objects.get().is_active


@pytest.mark.django_db(transaction=True)
def test_a_webhook_that_is_deleted_while_a_turn_ends_fails_neither(
    api: APIClient, session: Session
) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time.")
    store_webhook(session, "https://example.com/")
    webhook = Webhook.objects.get()
    statuses: list[int] = []

    def delete() -> None:
        try:
            statuses.append(api.delete(f"/api/v1/webhooks/{webhook.pk}").status_code)
        finally:
            connection.close()

    deleting = threading.Thread(target=delete)
    with transaction.atomic():
        append_events(session.pk, ("turn.completed", {"turn": str(uuid4())}))
        deleting.start()
        wait_for_blocked_connection()
    deleting.join(30)
    assert statuses == [204]
    assert not WebhookDelivery.objects.exists()
