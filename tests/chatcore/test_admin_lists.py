"""Lists of the admin stay quick: PostgreSQL reads by indexes, and no page asks row by row."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatcore.contrib.audit.models import AuditEntry
from chatcore.contrib.budgets.models import Budget, UsageSum
from chatcore.contrib.compat.models import StoredResponse
from chatcore.contrib.group_rights.models import GroupRights
from chatcore.contrib.holds.models import Hold
from chatcore.contrib.invitations.models import Invitation
from chatcore.contrib.webhooks.models import Webhook, WebhookDelivery
from chatcore.models import (
    ContextRevision,
    McpServer,
    Message,
    Session,
    SessionEvent,
    ToolApproval,
    Turn,
)
from compaction.memory.models import LedgerLine, SummaryLeaf
from compaction.models import CompactionPolicy, CompactionRun, SessionState
from compaction.systems.lota.models import WorkingState
from models_registry.models import AiModel, Provider
from tests.support.many_rows import UUID_OF, fill_table

pytestmark = pytest.mark.django_db
ROWS = 20_000
MAX_READ = 3_000  # rows of a large table that one step of a plan may read
MAX_QUERIES = 14
BIG_TABLES = {
    model._meta.db_table
    for model in (
        AuditEntry,
        CompactionRun,
        ContextRevision,
        LedgerLine,
        Message,
        Session,
        SessionEvent,
        SessionState,
        StoredResponse,
        SummaryLeaf,
        Turn,
        UsageSum,
        WebhookDelivery,
        WorkingState,
    )
}
SESSION = UUID_OF.format("n / 50 + 1")  # of a row that has 49 others beside it in its session
FIRST_SESSION = "c4ca4238-a0b9-2382-0dcc-509a6f75849b"  # md5("1")


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.fixture
def chat(user: User) -> Session:
    return Session.objects.create(owner=user)


@pytest.fixture
def many_rows(db: None, user: User) -> None:
    """Large tables in which nothing is rare but what is looked for."""
    owner, day = str(user.pk), f"current_date - ({ROWS} - n) / 500"
    rare = "CASE WHEN n % 5000 = 0 THEN '{}' ELSE '{}' END"
    fill_table(
        Session, ROWS, owner_id=owner, discard_at="NULL", title="'Talk ' || md5((n * 7)::text)"
    )
    fill_table(
        Turn,
        ROWS,
        session_id=UUID_OF.format("n"),
        status=rare.format("failed", "completed"),
        idempotency_key="NULL",
    )
    fill_table(
        Message, ROWS, session_id=SESSION, seq="n % 50 + 1", role="'user'", content="'word ' || n"
    )
    fill_table(ContextRevision, ROWS, session_id=SESSION, version="n % 50", source="'compaction'")
    fill_table(SessionEvent, ROWS, session_id=SESSION, seq="n % 50", name="'turn.started'")
    fill_table(StoredResponse, ROWS, session_id=SESSION)
    hook = Webhook.objects.create(owner=user, url="https://example.org/", events=[])
    fill_table(WebhookDelivery, ROWS, webhook_id=f"'{hook.pk}'", status="'delivered'")
    fill_table(AuditEntry, ROWS, act="'content.read'", actor_id=owner)
    fill_table(UsageSum, ROWS, owner_id=owner, day=day, purpose="'answer'", model="'acme/acme-1'")
    fill_table(
        CompactionRun,
        ROWS,
        session_id=SESSION,
        status=rare.format("failed", "applied"),
        trigger="'after_response'",
        policy="'oneclaw'",
    )
    fill_table(LedgerLine, ROWS, session_id=SESSION, seq="n % 50", kind="'rule'")
    fill_table(SummaryLeaf, ROWS, session_id=SESSION, run_id="NULL", kind="'span'")
    fill_table(SessionState, ROWS, session_id=UUID_OF.format("n"))
    fill_table(WorkingState, ROWS, session_id=UUID_OF.format("n"))
    with connection.cursor() as cursor:  # as autovacuum does soon
        cursor.execute("SELECT gin_clean_pending_list('words_of_titles')")


def name_list(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def list_addresses(client: Client, model: Any) -> Iterator[str]:
    """Yield the list, a later page, searches, and the list with each choice of each filter."""
    address = name_list(model)
    starts = [address]
    if any(field.name == "session" and field.is_relation for field in model._meta.fields):
        starts.append(f"{address}?session__id__exact={FIRST_SESSION}")
    yield f"{address}?p=3"
    for start in starts:
        yield start
        cl = client.get(start).context["cl"]
        for spec in cl.filter_specs:
            for choice in list(spec.choices(cl))[1:]:
                yield address + choice["query_string"]
    for words in (FIRST_SESSION, "alice", "Talk", "Talk 8f14e45", "word 77"):
        yield f"{address}?q={words}"
        yield f"{starts[-1]}{'&' if '?' in starts[-1] else '?'}q={words}"


def find_costly_steps(query: str) -> list[str]:
    """Return the steps of a query's plan that read a large table from end to end."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {query}")
        plan = cursor.fetchone()[0]
    plan = json.loads(plan) if isinstance(plan, str) else plan
    return [
        f"{step['Node Type']} of {step['Relation Name']}: {rows} rows"
        for step in walk_plan(plan[0]["Plan"])
        if step.get("Relation Name") in BIG_TABLES
        and (
            (rows := count_rows(step)) > MAX_READ or (step["Node Type"] == "Seq Scan" and rows > 0)
        )
    ]


def walk_plan(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield step
    for part in step.get("Plans", ()):
        yield from walk_plan(part)


def count_rows(step: dict[str, Any]) -> int:
    names = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
    return int(sum(step.get(name, 0) for name in names) * step["Actual Loops"])


def open_page(client: Client, address: str) -> tuple[int, list[str]]:
    """Return how many queries a page takes, and those that read too much of a large table."""
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(address)
        assert answer.status_code == 200, address
    complaints = []
    for query in captured.captured_queries:
        if query["sql"].startswith("SELECT"):
            complaints += [
                f"{address}: {step}\n{query['sql'][-300:]}"
                for step in find_costly_steps(query["sql"])
            ]
    return len(captured), complaints


@pytest.mark.skipif(connection.vendor != "postgresql", reason="plans of PostgreSQL")
def test_no_list_reads_a_table_from_end_to_end(operator: Client, many_rows: None) -> None:
    models = (
        Session,
        Message,
        Turn,
        ContextRevision,
        StoredResponse,
        WebhookDelivery,
        AuditEntry,
        UsageSum,
        CompactionRun,
        LedgerLine,
        SummaryLeaf,
        SessionState,
        WorkingState,
    )
    complaints = []
    for model in models:
        for address in list_addresses(operator, model):
            count, costly_steps = open_page(operator, address)
            complaints += costly_steps
            if count > MAX_QUERIES:
                complaints.append(f"{address}: {count} queries")
    for address in (
        reverse("admin:chatcore_session_change", args=[FIRST_SESSION]),
        reverse("admin:compaction_session_timeline", args=[FIRST_SESSION]),
        reverse("admin:compaction_compactionrun_change", args=[FIRST_SESSION]),
    ):
        complaints += open_page(operator, address)[1]
    _, costly_steps = open_page(operator, reverse("admin:index"))
    complaints += [step for step in costly_steps if "Seq Scan" in step]  # it reads days
    assert not complaints, "\n".join(complaints)


@pytest.fixture
def sixty_rows(db: None, chat: Session) -> None:
    """Sixty of each kind of row that a page lists, or offers as a choice."""
    numbers = range(60)
    users = User.objects.bulk_create([User(username=f"user-{number}") for number in numbers])
    groups = Group.objects.bulk_create([Group(name=f"group-{number}") for number in numbers])
    providers = Provider.objects.bulk_create(
        [Provider(name=f"provider-{number}", protocol="openai") for number in numbers]
    )
    models = AiModel.objects.bulk_create(
        [AiModel(provider=provider, name="one") for provider in providers]
        + [AiModel(provider=providers[0], name=f"model-{number}") for number in numbers]
    )
    rows: list[Any] = [Budget(group=group, amount=1) for group in groups]
    rows += [GroupRights(group=group) for group in groups]
    rows += [Hold(user=user, reason="A letter") for user in users]
    rows += [Invitation(made_by=user, digest=user.pk, expires_at=timezone.now()) for user in users]
    rows += [McpServer(owner=user, name="tools", url="https://example.org/") for user in users]
    rows += [AuditEntry(act="sign_in.succeeded", actor=user) for user in users]
    rows += [
        UsageSum(owner=user, day=timezone.now(), model="m", purpose="answer") for user in users
    ]
    rows += [Session(owner=user, model=model) for user, model in zip(users, models, strict=False)]
    for row in rows:
        row.save()
    for session in Session.objects.exclude(pk=chat.pk):
        turn = Turn.objects.create(session=session, status="failed", lease_until=timezone.now())
        message = Message.objects.create(session=session, turn=turn, seq=1, role="user")
        ContextRevision.objects.create(session=session, version=1, source="edit")
        StoredResponse.objects.create(session=session, turn=turn)
        ToolApproval.objects.create(
            session=session,
            server=McpServer.objects.earliest("pk"),
            message=message,
            tool_call_id="c",
            decision="once",
        )
        run = CompactionRun.objects.create(
            session=session, status="failed", trigger="manual", policy="oneclaw"
        )
        SummaryLeaf.objects.create(
            session=session, run=run, kind="span", first_seq=1, last_seq=2, tokens=3
        )
        LedgerLine.objects.create(session=session, kind="rule", seq=1)
        SessionState.objects.create(session=session)
        WorkingState.objects.create(session=session)
        CompactionPolicy.objects.create(name=f"policy-{message.pk}")


@pytest.mark.slow
def test_no_page_asks_the_database_row_by_row(operator: Client, sixty_rows: None) -> None:
    complaints = []
    for model in admin.site._registry:
        row = model._default_manager.order_by("pk").first()
        addresses = [name_list(model)]
        if row is not None:
            addresses.append(addresses[0] + f"{row.pk}/change/")
        for address in addresses:
            with CaptureQueriesContext(connection) as captured:
                assert operator.get(address).status_code == 200, address
            shapes = Counter(re.sub(r"'[^']*'|\d+", "?", q["sql"]) for q in captured)
            query, count = shapes.most_common(1)[0]
            if count > 6 or len(captured) > 20:
                complaints.append(
                    f"{address}: {len(captured)} queries, {count} times {query[:200]}"
                )
    assert not complaints, "\n".join(complaints)
