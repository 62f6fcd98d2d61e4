"""The core without its optional apps: page, REST, admin, streams, compaction and undo.

tests/contrib/test_absent.py runs this file in a process of its own, where CHATCORE_WITHOUT is set.
"""

import re
from io import StringIO

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import get_resolver, reverse
from rest_framework.test import APIClient

from chatcore.extension import list_absent_apps
from chatcore.models import Session, Turn
from chatcore.transfer import importer
from compaction import policies
from compaction.core import presets
from compaction.core.knobs import PolicyError
from compaction.models import CompactionPolicy
from tests.contract.facts import list_commands
from tests.support.admin_forms import read_form
from tests.support.compaction_sessions import fill_session, say, summarize_or_chat
from tests.support.event_streams import iterate_events, open_api_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.stored_talk import summarize

pytestmark = pytest.mark.django_db(transaction=True)
# What nobody reads where the app is absent.
WORDS = {
    "group_rights": r"rights of (a )?groups?\b|group_?rights",
    "holds": r"legal hold",
    "imports": r"/imports\b|data-imports|import of another product|\bimport(problem|edchat)",
    "invitations": r"(?<!late )invit",
    "audit": r"audit (log|entr)",
    "backups": r"verify_backup",
    "compat": r"storedresponse|(?<!api)/v1/(?!\w+/\{)|CHATCORE_COMPATIBLE",
    "budgets": r"(?<!token )(?<!context )(?<!context_)\bbudget",
    "local_model": r"small model|local.model|embedded (language )?model",
    "mcp_server": r"(?<![\w…])/mcp(?!\w)",
    "metrics": r"prometheus|/metrics\b",
    "neurolink": r"neurolink",
    "wolffish": r"wolffish",
    "baseagent": r"base.?agent",
    "lota": r"working.?state|(?<!/admin)/(state|memory)\b",
    "memory": r"ledger|lifted from|summary lea(f|ves)|not in the summary|context/missing",
    "sent_requests": r"see what was sent|sent_?requests?\b|/messages/\S{1,20}/request\b",
    "sharing": r"shared? (a |this )?chats?\b|\"share\"|/shares?\b|>\s*share\s*<|public links?",
    "terminal": r"in a terminal",
    "prompts": r"(?<!-)\bprompts\b(?! library)",
    "tracing": r"opentelemetry|chatcore_traces",
    "webhooks": r"webhook",
}
PATHS = {
    "budgets": "/api/v1/usage",
    "compat": "/v1/chat/completions",
    "imports": "/api/v1/imports/uploads",
    "invitations": "/invitation/token/",
    "mcp_server": "/mcp",
    "lota": "/api/v1/sessions/00000000-0000-0000-0000-000000000000/state",
    "memory": "/api/v1/rules",
    "metrics": "/metrics",
    "sharing": "/api/v1/shares",
    "prompts": "/api/v1/prompts",
    "webhooks": "/api/v1/webhooks",
}


def find_words(text: str) -> list[str]:
    """Return each absent app's first word in the text, between the 40 characters around it."""
    found = [re.search(WORDS[app.name], text, re.IGNORECASE) for app in list_absent_apps()]
    return [text[max(0, match.start() - 40) : match.end() + 40] for match in found if match]


def test_it_is_absent_indeed() -> None:
    assert list_absent_apps()
    assert not {app.name for app in list_absent_apps()} & {
        config.label for config in apps.get_app_configs()
    }


def test_no_table_is_left_and_no_migration_is_missing() -> None:
    tables = connection.introspection.table_names()
    assert not [table for app in list_absent_apps() for table in app.tables if table in tables]
    call_command("makemigrations", check=True, dry_run=True, verbosity=0)
    call_command("check", databases=["default"], stdout=StringIO())


def test_rest_and_commands_have_no_word_of_it(api: APIClient) -> None:
    schema = api.get("/api/schema/", headers={"Accept": "application/json"}).content.decode()
    assert "/api/v1/sessions" in schema
    assert find_words(schema) == []
    assert find_words("\n".join(list_commands())) == []
    assert find_words(str(get_resolver().reverse_dict.keys())) == []


def test_no_path_of_it_is_served(live: object, user: User) -> None:
    absent_names = [app.name for app in list_absent_apps()]
    with open_api_client(live.url, user) as client:  # type: ignore[attr-defined]
        for name, path in PATHS.items():
            status = client.post(f"{live.url}{path}", json={}).status_code  # type: ignore[attr-defined]
            assert (status == 404) == (name in absent_names), path


def test_pages_have_no_word_of_it(client: Client, session: Session, user: User) -> None:
    client.force_login(user)
    for path in ("/", "/new/", f"/c/{session.pk}/", "/chats/", "/settings/"):
        answer = client.get(path, follow=True)
        assert answer.status_code == 200, path
        assert find_words(answer.content.decode()) == [], path


def test_the_admin_has_no_page_and_no_right_of_it(admin_client: Client, session: Session) -> None:
    labels = {model._meta.app_label for model in admin.site._registry}
    assert not labels & {app.name for app in list_absent_apps()}
    # What an earlier installation with the app has left.
    for app in list_absent_apps():
        content_type = ContentType.objects.create(app_label=app.name, model="left")
        Permission.objects.create(content_type=content_type, codename="view_left", name="Left over")
    group = Group.objects.create(name="Staff")
    addresses = [reverse("admin:index"), reverse("admin:auth_group_change", args=[group.pk])]
    addresses += [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for model in admin.site._registry
    ]
    for address in addresses:
        answer = admin_client.get(address)
        assert answer.status_code == 200, address
        assert find_words(answer.content.decode()) == [], address
        assert "Left over" not in answer.content.decode(), address


def test_an_answer_is_streamed_and_a_late_reader_gets_all_of_it(
    live: object, user: User, session: Session, scripted: ScriptedModel
) -> None:
    scripted.script(Reply(chunks=["Two ", "words."]))
    with open_api_client(live.url, user) as client:  # type: ignore[attr-defined]
        body = {"content": "Hello?", "stream": True}
        with client.stream("POST", f"/sessions/{session.pk}/messages", json=body) as response:
            events = list(iterate_events(response))
        assert [event["event"] for event in events][-1] == "turn.completed"
        later = {"Last-Event-ID": str(events[0]["id"])}
        with client.stream("GET", f"/sessions/{session.pk}/events", headers=later) as response:
            again = next(iterate_events(response))
    assert again["id"] == events[1]["id"]
    assert session.messages.get(role="assistant").content == "Two words."


@pytest.mark.parametrize("preset", sorted(presets.PRESETS))
def test_a_context_is_compacted_and_that_is_undone(
    api: APIClient, session: Session, scripted: ScriptedModel, preset: str
) -> None:
    scripted.default = summarize_or_chat()
    fill_session(session)
    address = f"/api/v1/sessions/{session.pk}"
    assert api.patch(address, {"policy": preset}).status_code == 200
    run = api.post(f"{address}/compact", {"wait": True}).json()
    assert run["status"] == "applied", run
    assert api.post(f"/api/v1/compactions/{run['id']}/rewind").status_code == 200
    assert api.post(f"{address}/messages", {"content": "And now?"}).status_code == 201


def test_a_stored_policy_of_an_absent_system_is_named_and_chats_go_on(
    api: APIClient, admin_client: Client, session: Session, scripted: ScriptedModel
) -> None:
    if apps.is_installed("compaction.systems.wolffish"):
        return
    row = CompactionPolicy.objects.create(name="old", base="wolffish")
    Session.objects.filter(pk=session.pk).update(policy="old")
    address = reverse("admin:compaction_compactionpolicy_changelist")
    assert "a preset that is not installed" in admin_client.get(address).content.decode()
    address = reverse("admin:compaction_compactionpolicy_change", args=[row.pk])
    assert "wolffish (not installed)" in admin_client.get(address).content.decode()
    output = StringIO()
    call_command("check", databases=["default"], stderr=output)
    assert "The stored policy 'old' cannot be used" in output.getvalue()
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages", {"content": "Hello?"})
    assert answer.status_code == 201


def test_a_run_of_before_is_executed_unless_it_needs_an_absent_system() -> None:
    snapshot = presets.ONECLAW.to_dict() | {"slide": {"fraction": 0.5}}
    assert policies.parse_policy_snapshot(snapshot) == policies.limit_policy(presets.ONECLAW)
    if set(presets.PRESETS) == {"oneclaw", "chatcore"}:
        snapshot["protect"]["kind"] = "count"
        with pytest.raises(PolicyError, match="needs a system that is not installed"):
            policies.parse_policy_snapshot(snapshot)


def test_the_form_of_a_policy_has_no_settings_that_only_absent_systems_use(
    admin_client: Client,
) -> None:
    page = admin_client.get(reverse("admin:compaction_compactionpolicy_add")).content.decode()
    are_absent = set(presets.PRESETS) == {"oneclaw", "chatcore"}
    assert ("Other systems" in page) is not are_absent
    # What a policy sets is shown all the same, and stays when the form is saved.
    overrides = {"stages": ["summarize"], "target": {"otherwise": "fits"}}
    row = CompactionPolicy.objects.create(name="own", base="oneclaw", overrides=overrides)
    address = reverse("admin:compaction_compactionpolicy_change", args=[row.pk])
    page = admin_client.get(address).content.decode()
    assert ("Not known here" in page) is are_absent
    assert ("Other systems: target" in page) is not are_absent
    fields = read_form(page, "compactionpolicy_form") | {"summary__max_words": "300"}
    assert admin_client.post(address, fields).status_code == 302
    row.refresh_from_db()
    assert row.overrides == overrides | {"summary": {"max_words": 300}}


def test_nothing_is_brought_back_without_memory_but_what_was_is_shown(
    api: APIClient, session: Session, scripted: ScriptedModel
) -> None:
    Session.objects.filter(pk=session.pk).update(policy="chatcore")
    said = [{"role": "user", "content": "My locker has the number 4711."}]
    importer.import_messages(session, said)
    summarize(session, "They talked of small things.", boundary_seq=2)
    turn = say(session, "Which number has my locker?")
    if not apps.is_installed("compaction.memory"):
        assert turn.recalled is None
    passage = {"message": 1, "seq": 1, "role": "user", "date": "2026-11-01", "text": "It is 4711."}
    Turn.objects.update(recalled={"question": 2, "passages": {"1": passage}})
    preview = api.get(f"/api/v1/sessions/{session.pk}/context/preview/").json()
    assert [passage["text"] for passage in preview["recalled"]] == ["It is 4711."]


def test_a_session_and_its_owner_are_deleted_whole(api: APIClient, user: User) -> None:
    session = api.post("/api/v1/sessions", {"title": "Birds"}).json()
    assert api.delete(f"/api/v1/sessions/{session['id']}").status_code == 204
    assert not Session.all_objects.exists()
    call_command("erase_user", user.username, yes=True, stdout=StringIO())
    assert not User.objects.filter(pk=user.pk).exists()
