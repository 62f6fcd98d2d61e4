"""The pages and actions of the admin, and the two commands for operators."""

from io import StringIO
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chatcore.models import Session
from compaction.models import CompactionRun, SessionState
from compaction.runs import engine
from tests.support.compaction_sessions import SUMMARY, fill_session
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)

RUNS = "admin:compaction_compactionrun_changelist"


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator"))
    return client


def act(operator: Client, action: str, run: CompactionRun) -> str:
    response = operator.post(
        reverse(RUNS), {"action": action, "_selected_action": [str(run.pk)]}, follow=True
    )
    return response.content.decode()


def test_a_run_shows_its_summaries_side_by_side_as_text(
    full: Session, operator: Client, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(text="Alice <script>alert(1)</script> plans a trip."))
    run = engine.compact_now(full.pk, trigger="manual")
    page = operator.get(
        reverse("admin:compaction_compactionrun_change", args=[run.pk])
    ).content.decode()
    assert "Alice &lt;script&gt;alert(1)&lt;/script&gt; plans a trip." in page
    assert "<script>alert" not in page
    assert "first claimed" in page


def test_the_list_takes_the_same_queries_however_many_runs(full: Session, operator: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            assert operator.get(reverse(RUNS)).status_code == 200
        return len(captured)

    CompactionRun.objects.create(
        session_id=full.pk, trigger="manual", status="skipped", policy="oneclaw"
    )
    queries()
    few = queries()
    CompactionRun.objects.bulk_create(
        CompactionRun(session_id=full.pk, trigger="manual", status="skipped", policy="oneclaw")
        for _ in range(50)
    )
    assert queries() == few


def test_the_actions_retry_rewind_and_compact(full: Session, operator: Client) -> None:
    run = engine.compact_now(full.pk, trigger="manual", instructions="the hotel")
    assert "rewound" in act(operator, "rewind_to_before", run)
    assert "only an applied one can be undone" in act(operator, "rewind_to_before", run)
    act(operator, "retry", run)
    again = CompactionRun.objects.get(status="queued")
    assert (again.trigger, again.instructions) == ("manual", "the hotel")
    engine.execute_run(again.pk)
    act(operator, "compact_now", run)
    assert CompactionRun.objects.filter(status="queued").count() == 1


def test_runs_are_not_edited_and_states_are_shown(full: Session, operator: Client) -> None:
    SessionState.objects.create(session_id=full.pk, failures=3)
    assert operator.get(reverse("admin:compaction_compactionrun_add")).status_code == 403
    states = reverse("admin:compaction_sessionstate_changelist")
    for words in ("", str(full.pk), "no id"):
        assert operator.get(states, {"q": words}).status_code == 200
        assert operator.get(reverse(RUNS), {"q": words}).status_code == 200
    page = operator.get(
        reverse("admin:compaction_sessionstate_change", args=[full.pk])
    ).content.decode()
    assert "<select" not in page  # of all sessions
    assert operator.get(reverse("admin:compaction_compactionpolicy_add")).status_code == 200


def test_a_policy_that_cannot_be_is_refused_in_the_form(operator: Client) -> None:
    wrong = {"name": "mine", "base": "oneclaw", "trigger__threshold": "2"}
    page = operator.post(reverse("admin:compaction_compactionpolicy_add"), wrong).content.decode()
    assert "trigger.threshold must be a ratio between 0 and 1" in page


def test_the_command_compacts_a_session(full: Session) -> None:
    out = StringIO()
    call_command("compact_session", str(full.pk), stdout=out)
    full.refresh_from_db()
    assert full.compacted_summary == SUMMARY
    assert "applied" in out.getvalue()
    assert "10 messages into a summary" in out.getvalue()


def test_the_dry_run_says_what_each_stage_would_do(full: Session, scripted: ScriptedModel) -> None:
    out = StringIO()
    call_command("compact_session", str(full.pk), "--dry-run", stdout=out)
    assert "summarize: 10 messages into a summary" in out.getvalue()
    assert "boundary   none → 11" in out.getvalue()
    assert not scripted.requests


@pytest.mark.parametrize(
    ("policy", "stages"),
    [
        ("neurolink", ["slide_window: 8 messages left out"]),
        (
            "wolffish",
            ["excerpt: 1 message cut in the middle", "summarize: 11 messages into a summary"],
        ),
    ],
)
def test_each_stage_says_what_it_would_do(full: Session, policy: str, stages: list[str]) -> None:
    out = StringIO()
    names = ",".join(stage.partition(":")[0] for stage in stages)
    call_command(
        "compact_session",
        str(full.pk),
        "--dry-run",
        "--policy",
        policy,
        "--stages",
        names,
        stdout=out,
    )
    assert [
        line.removeprefix("stage").strip()
        for line in out.getvalue().splitlines()
        if line.startswith("stage")
    ] == stages


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [([str(uuid4())], "There is no session"), (["--policy", "nonsense"], "no compaction policy")],
)
def test_the_command_says_what_is_wrong(
    full: Session, arguments: list[str], complaint: str
) -> None:
    with pytest.raises(CommandError, match=complaint):
        call_command(
            "compact_session", *(arguments if len(arguments) == 1 else [str(full.pk), *arguments])
        )


def test_the_command_fails_when_the_run_does(full: Session, scripted: ScriptedModel) -> None:
    scripted.default = Reply(status=500)
    with pytest.raises(CommandError, match="The run failed"):
        call_command("compact_session", str(full.pk), stdout=StringIO())


def test_the_sweep_command_says_how_many(full: Session) -> None:
    out = StringIO()
    CompactionRun.objects.create(
        session_id=full.pk, trigger="manual", policy="oneclaw", created_at="2026-01-01T00:00:00Z"
    )
    call_command("sweep_compactions", stdout=out)
    assert out.getvalue().startswith("1 runs")


def test_the_page_shows_what_became_of_each_message_and_the_state(
    session: Session, operator: Client, scripted: ScriptedModel
) -> None:
    fill_session(session, messages=30)
    scripted.default = Reply(
        text="KEY FACTS:\n- A trip.\n```json\n"
        '{"decisions": {"add": ["They fly <b>from Porto</b>."]}}\n```'
    )
    run = engine.compact_now(session.pk, trigger="manual", policy="lota")
    assert run.status == "applied", run.reason
    page = operator.get(
        reverse("admin:compaction_compactionrun_change", args=[run.pk])
    ).content.decode()
    assert "They fly &lt;b&gt;from Porto&lt;/b&gt;." in page
    assert "<th>method</th>" in page
    assert "summarized" in page
    assert f"seq__lt={run.boundary_after}" in page
    listed = operator.get(
        reverse("admin:chatcore_message_changelist"),
        {"session__id__exact": str(session.pk), "seq__lt": "5"},
    )
    assert listed.status_code == 200
    assert listed.context["cl"].result_count == 4


def test_an_operator_goes_back_to_an_earlier_run_clears_and_verifies(
    full: Session, operator: Client
) -> None:
    first = engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    assert "Nothing came after the run." in act(operator, "rewind_to_here", first)
    second = engine.compact_now(full.pk, trigger="manual")
    assert "what came after it was rewound" in act(operator, "rewind_to_here", first)
    full.refresh_from_db()
    assert (full.compacted_summary, full.compact_boundary_seq) == (SUMMARY, 5)
    assert [CompactionRun.objects.get(pk=run.pk).status for run in (first, second)] == [
        "applied",
        "rewound",
    ]
    assert "everything holds" in act(operator, "verify", first)
    assert "sends the full history again" in act(operator, "clear_summary", first)
    full.refresh_from_db()
    assert full.compacted_summary is None
    Session.objects.filter(pk=full.pk).update(message_count=99)
    assert "message_count is 99" in act(operator, "verify", first)


def test_a_retry_asks_for_the_same_stages(full: Session, operator: Client) -> None:
    run = engine.compact_now(full.pk, trigger="manual", policy="neurolink", stages=["slide_window"])
    act(operator, "retry", run)
    again = CompactionRun.objects.get(status="queued")
    assert (again.policy, again.only_stages) == ("neurolink", ["slide_window"])
