"""The operators' pages of a run, its calls, and a session's timeline: what they show and do."""

import re
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from chatcore.contrib.audit.models import AuditEntry
from chatcore.models import ContextRevision, Session
from compaction.admin.policies import PolicyForm
from compaction.core.policy import DEFAULT_SETTINGS
from compaction.memory.models import LedgerLine
from compaction.models import CompactionPolicy, CompactionRun, ModelCall, SessionState
from compaction.runs import engine
from tests.support.admin_forms import read_form
from tests.support.compaction_sessions import SUMMARY, fill_session, say
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def operator(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("operator"))
    return client


@pytest.fixture
def support(user: User) -> Client:
    """Staff who look at runs, without the right to see contents or to act."""
    staff = User.objects.create_user("support", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="view_compactionrun"))
    client = Client()
    client.force_login(staff)
    return client


@pytest.fixture
def run(full: Session, scripted: ScriptedModel) -> CompactionRun:
    scripted.script(Reply(text="xyzzy " * 200), Reply(text=SUMMARY))
    return engine.compact_now(full.pk, trigger="manual")


def find_page(run: CompactionRun) -> str:
    return reverse("admin:compaction_compactionrun_change", args=[run.pk])


def find_timeline(session: Session) -> str:
    return reverse("admin:compaction_session_timeline", args=[session.pk])


def test_a_run_shows_its_calls_and_what_may_be_done(run: CompactionRun, operator: Client) -> None:
    page = operator.get(find_page(run)).content.decode()
    assert "Call 1" in page
    assert "Call 2" in page
    assert "not a summary" in page
    assert "<ins>" in page
    assert "Rewind to before" in page
    assert 'name="_save"' not in page
    assert f"/{run.pk}/delete/" not in page
    call = operator.get(reverse("admin:compaction_call", args=[run.pk, 1])).content.decode()
    assert "&lt;transcript&gt;" in call
    assert "xyzzy xyzzy" in call
    assert AuditEntry.objects.filter(act="content.read", detail__startswith="call 1").exists()


def test_a_run_begins_with_what_was_asked_and_folds_a_long_list(
    run: CompactionRun, operator: Client
) -> None:
    def open_page() -> str:
        return operator.get(find_page(run)).content.decode()

    page = open_page()
    assert page.index("What the model was asked") < page.index("What it did")
    target = {"seq": 1, "role": "user", "tool": "", "method": "summary"}
    target |= {"chars_before": 10, "chars_after": 0}
    for count in (20, 21):
        CompactionRun.objects.update(targets=[target | {"seq": seq} for seq in range(count)])
        assert (f"<summary>{count} rows</summary>" in open_page()) is (count == 21)


def test_who_may_not_see_contents_sees_sizes_only(
    run: CompactionRun, full: Session, support: Client
) -> None:
    page = support.get(find_page(run))
    assert page.status_code == 200
    assert SUMMARY[:40] not in page.content.decode()
    assert "Rewind to before" not in page.content.decode()
    assert support.get(reverse("admin:compaction_call", args=[run.pk, 1])).status_code == 403
    timeline = support.get(find_timeline(full))
    assert timeline.status_code == 200
    assert SUMMARY[:40] not in timeline.content.decode()
    assert support.post(find_timeline(full), {"act": "clear"}).status_code == 403


def test_a_button_of_a_run_acts_is_noted_and_goes_back(
    run: CompactionRun, full: Session, operator: Client
) -> None:
    press = {"_selected_action": str(run.pk), "index": "0", "on_page_of": str(run.pk)}
    answer = operator.post(
        reverse("admin:compaction_compactionrun_changelist"), {"action": "rewind_to_before"} | press
    )
    assert (answer.status_code, answer.headers["Location"]) == (302, find_page(run))
    run.refresh_from_db()
    assert run.status == "rewound"
    assert AuditEntry.objects.filter(act="admin.rewind_to_before", object_id=run.pk).exists()
    fill_session(full, messages=4)
    waiting = engine.request_run(full.pk, trigger="manual")
    press = {"_selected_action": str(waiting.pk), "index": "0", "on_page_of": str(waiting.pk)}
    operator.post(
        reverse("admin:compaction_compactionrun_changelist"), {"action": "cancel"} | press
    )
    waiting.refresh_from_db()
    assert (waiting.status, waiting.reason) == ("skipped", "It was stopped by hand.")


def test_the_ledger_of_a_timeline_has_each_line_once(full: Session, operator: Client) -> None:
    for seq, text in enumerate(["Answer in German.", "answer in  German.", "Never delete."]):
        LedgerLine.objects.create(session=full, kind="rule", text=text, seq=seq)
    LedgerLine.objects.create(
        session=full, kind="rule", text="Gone with its message.", seq=9, is_withdrawn=True
    )
    lines = operator.get(find_timeline(full)).context["ledger"]
    assert [line.text for line in lines] == ["Never delete.", "answer in  German."]


def test_the_first_page_says_whether_summaries_are_good(
    run: CompactionRun, full: Session, operator: Client
) -> None:
    other = CompactionRun.objects.create(
        session=full, status="fell_back", trigger="manual", policy="oneclaw"
    )
    ModelCall.objects.create(
        run=other, number=1, claim=1, kind="messages", part=1, attempt=1, refusal="nonsense"
    )
    ModelCall.objects.create(
        run=run,
        number=9,
        claim=1,
        kind="messages",
        part=1,
        attempt=2,
        refusal="no_answer",
        model="scripted/test-model",
    )
    CompactionRun.objects.create(session=full, status="failed", trigger="manual", policy="lota")
    CompactionRun.objects.create(session=full, status="rewound", trigger="manual", policy="lota")
    SessionState.objects.update_or_create(session=full, defaults={"fruitless": 2})
    Session.objects.update(title="Lisbon")
    cards = {card["title"]: card for card in operator.get("/admin/").context["cards"]}
    held = cards["Summaries that held, in 7 days"]
    assert held["value"] == "25.0%"
    assert [row[1] for row in held["rows"]] == ["1", "1", "1", "1"]
    failed = cards["Models whose summary calls failed in the last hour"]
    assert (failed["value"], failed["rows"][0][:2]) == ("1", ("scripted/test-model", "1"))
    reasons = cards["Failures of compaction in 7 days, by reason"]
    assert [row[:2] for row in reasons["rows"]] == [
        ("not a summary", "1"),
        ("without an answer that was refused", "1"),
    ]
    rows = operator.get(reasons["rows"][0][2]).context["cl"].result_list
    assert [row.pk for row in rows] == [other.pk]
    stopped = cards["Sessions that stopped compacting"]
    assert stopped["value"] == "1"
    assert str(full.pk) in operator.get(stopped["link"]).content.decode()
    page = operator.get(reverse("admin:compaction_compactionrun_changelist")).content.decode()
    assert 'run-badge run-fell_back">failed, oldest messages left out' in page
    assert f'href="{find_timeline(full)}">Lisbon</a>' in page


def test_a_timeline_shows_sizes_versions_and_acts(
    run: CompactionRun, full: Session, operator: Client, scripted: ScriptedModel
) -> None:
    Session.objects.update(title="Lisbon")
    full.refresh_from_db()
    scripted.script(Reply(text="Noted.", usage=(2_900, 5)))
    say(full)
    address = find_timeline(full)
    page = operator.get(address).content.decode()
    assert "<svg" in page
    assert page.count('class="dot"') == 1
    assert re.search(r"<a[^>]*/chatcore/session/[^>]*>\s*Lisbon\s*</a", page)
    assert "threshold 6,963" in page
    assert "Version 1" in page
    assert "version 1 ·" in page
    assert "Rewind to this" not in page  # it is in force
    assert SUMMARY[:40] in page
    trial = operator.get(address, {"try": "oneclaw"}).content.decode()
    assert "oneclaw would end as" in trial
    operator.post(address, {"act": "edit", "summary": "Alice goes to Porto."})
    full.refresh_from_db()
    assert full.compacted_summary == "Alice goes to Porto."
    edit = ContextRevision.objects.get(session=full, version=full.context_version)
    assert edit.actor_id == User.objects.get(username="operator").pk
    assert "by operator" in operator.get(address).content.decode()
    operator.post(address, {"act": "rewind", "version": "1"})
    full.refresh_from_db()
    assert full.compacted_summary == SUMMARY
    operator.post(address, {"act": "clear"})
    assert Session.objects.filter(pk=full.pk, compacted_summary=None).exists()
    operator.post(address, {"act": "compact", "policy": "oneclaw"})
    assert CompactionRun.objects.filter(session=full, status="queued").count() == 1
    acts = set(AuditEntry.objects.filter(act__startswith="admin.").values_list("act", flat=True))
    assert {"admin.edit", "admin.rewind", "admin.clear", "admin.compact"} <= acts


def test_a_version_that_restored_another_one_brings_back_the_same_runs(
    full: Session, operator: Client
) -> None:
    first = engine.compact_now(full.pk, trigger="manual", up_to_seq=4)
    second = engine.compact_now(full.pk, trigger="manual", up_to_seq=6)
    address = find_timeline(full)
    operator.post(address, {"act": "rewind", "version": "1"})
    third = engine.compact_now(full.pk, trigger="manual", up_to_seq=8)
    full.refresh_from_db()
    assert full.context_version == 4

    def read_statuses() -> list[str]:
        return list(CompactionRun.objects.order_by("created_at").values_list("status", flat=True))

    assert [first.status, second.status, third.status] == ["applied"] * 3
    operator.post(address, {"act": "rewind", "version": "3"})
    assert read_statuses() == ["applied", "rewound", "rewound"]
    operator.post(address, {"act": "rewind", "version": "2"})
    assert read_statuses() == ["applied", "applied", "rewound"]
    operator.post(address, {"act": "rewind", "version": "0"})
    assert read_statuses() == ["rewound"] * 3


def open_policy(operator: Client, row: CompactionPolicy) -> tuple[str, dict[str, Any]]:
    address = reverse("admin:compaction_compactionpolicy_change", args=[row.pk])
    page = operator.get(address).content.decode()
    return address, read_form(page, "compactionpolicy_form")


def test_a_policy_has_a_field_for_each_knob(operator: Client) -> None:
    overrides = {"trigger": {"threshold": 0.8}, "stages": ["dedupe_file_reads", "summarize"]}
    row = CompactionPolicy.objects.create(name="own", base="lota", overrides=overrides)
    address, fields = open_policy(operator, row)
    assert fields["trigger__threshold"] == "0.8"
    assert fields["stages"] == "dedupe_file_reads, summarize"
    html = operator.get(address).content.decode()
    assert "Takes a ratio between 0 and 1. In lota: <code>" in html
    assert '<option value="workstream">workstream</option>' in html
    assert operator.post(address, fields).status_code == 302
    row.refresh_from_db()
    assert row.overrides == overrides
    edits = {
        "trigger__threshold": "",
        "target__otherwise": "fits",
        "summary__max_words": "300",
        "target__ratio": "null",
        "prune__skip_tools": "read_file, bash",
    }
    known = {name: value for name, value in edits.items() if name in PolicyForm().fields}
    assert operator.post(address, fields | known).status_code == 302
    row.refresh_from_db()
    assert row.overrides["target"] == {"otherwise": "fits", "ratio": None}
    assert row.overrides["summary"] == {"max_words": 300}
    assert "trigger" not in row.overrides


def test_a_policy_shows_what_most_policies_set_and_folds_the_rest(operator: Client) -> None:
    row = CompactionPolicy.objects.create(
        name="own", base="lota", overrides={"memory": {"entries": 5}}
    )
    address, fields = open_policy(operator, row)
    sections = operator.get(address).context["adminform"].fieldsets
    is_open = {name: "collapse" not in options.get("classes", ()) for name, options in sections}
    assert [name for name, shown in is_open.items() if shown] == [
        None,
        "Settings",
        "Other systems: memory",
    ]
    in_sections = [name for _, options in sections for name in options["fields"]]
    assert len(in_sections) == len(set(in_sections))
    assert {name for name in fields if "__" in name} <= set(in_sections)
    [shown_fields] = [options["fields"] for name, options in sections if name == "Settings"]
    assert [name.replace("__", ".") for name in shown_fields] == list(DEFAULT_SETTINGS)


def test_a_wrong_value_is_refused_beside_its_knob(operator: Client) -> None:
    row = CompactionPolicy.objects.create(name="own", base="oneclaw")
    address, fields = open_policy(operator, row)
    for name, text, words in (
        ("trigger__threshold", "3", "trigger.threshold must be a ratio between 0 and 1, not 3."),
        ("target__ratio", "0.99", "target.ratio must be below trigger.threshold"),
        ("stages", "nosuch", "stages must be a list of different names"),
    ):
        answer = operator.post(address, fields | {name: text})
        assert answer.status_code == 200
        errors = answer.context["adminform"].errors
        assert list(errors) == [name]
        assert words in errors[name][0]
    row.refresh_from_db()
    assert row.overrides == {}


def test_a_policy_is_tried_on_a_session_before_it_is_saved(
    operator: Client, full: Session, support: Client
) -> None:
    address = reverse("admin:compaction_trial")
    values = {"base": "oneclaw", "trigger__threshold": "0.7", "try_session": str(full.pk)}
    answer = operator.post(address, values)
    run = answer.context["run"]
    assert (run.status, run.tokens_before > run.tokens_after) == ("applied", True)
    assert "trigger.threshold" in answer.content.decode()
    assert not CompactionRun.objects.exists()
    assert not CompactionPolicy.objects.exists()
    refused = operator.post(address, values | {"trigger__threshold": "7"}).content.decode()
    assert "trigger.threshold must be a ratio between 0 and 1, not 7." in refused
    assert support.post(address, values).status_code == 403
