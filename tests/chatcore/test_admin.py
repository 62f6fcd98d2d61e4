"""The admin site: each page opens, shows no key, escapes texts of people and takes few queries."""

import re
from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from chatcore.admin.sessions import SessionAdmin
from chatcore.context import revisions
from chatcore.contrib.budgets.models import COST_UNIT, Budget, UsageSum
from chatcore.models import Attachment, Message, Session, Turn
from chatcore.turns.messages import append_message
from models_registry.models import AiModel, Provider
from tests.support.model_rows import make_row
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db
KEY = "sk-very-secret-0123456789"
HOSTILE = "<script>alert('x')</script>"


@pytest.fixture
def operator(user: User) -> Client:
    root = User.objects.create_superuser("root", password="root's password")
    client = Client()
    client.force_login(root)
    return client


@pytest.fixture
def provider(db: None) -> Provider:
    provider = Provider(name="acme", protocol="openai", base_url="http://127.0.0.1:9/v1")
    provider.api_key = KEY
    provider.save()
    return provider


@pytest.fixture
def chat(user: User, provider: Provider) -> Session:
    """A compacted conversation with a tool call and an attachment."""
    model = AiModel.objects.create(provider=provider, name="acme-1", context_window_size=8192)
    chat = Session.objects.create(owner=user, model=model, title=f"Travel {HOSTILE}")
    turn = Turn.objects.create(session=chat, status="completed", lease_until=timezone.now())
    call = {"id": "c1", "name": "calculate", "arguments": f'{{"expression": "{HOSTILE}"}}'}
    first = Message.objects.create(
        session=chat, turn=turn, seq=1, role="user", content=HOSTILE * 40
    )
    Message.objects.create(
        session=chat, turn=turn, seq=2, role="assistant", reasoning=HOSTILE, tool_calls=[call]
    )
    Message.objects.create(
        session=chat,
        turn=turn,
        seq=3,
        role="tool",
        content="9",
        tool_call_id="c1",
        tool_name="calculate",
    )
    Attachment.objects.create(
        session=chat, message=first, name=HOSTILE, media_type="text/plain", size=3, data=b"abc"
    )
    revisions.install_revision(
        chat.pk,
        base_version=0,
        summary=f"We spoke of {HOSTILE}",
        boundary_seq=3,
        source="compaction",
    )
    return chat


def page(client: Client, name: str, *args: Any, query: str = "") -> str:
    response = client.get(reverse(f"admin:{name}", args=args) + query)
    assert response.status_code == 200
    html = response.content.decode()
    assert KEY not in html
    return html


def lists() -> list[str]:
    return [
        f"{model._meta.app_label}_{model._meta.model_name}_changelist"
        for model in admin.site._registry
    ]


@pytest.mark.parametrize("name", lists())
def test_every_list_opens(operator: Client, chat: Session, name: str) -> None:
    page(operator, name)


@pytest.mark.parametrize("name", lists())
def test_every_row_opens(operator: Client, chat: Session, name: str) -> None:
    model = next(
        m
        for m in admin.site._registry
        if name == f"{m._meta.app_label}_{m._meta.model_name}_changelist"
    )
    row = model._default_manager.first() or make_row(model)
    assert f"{row.pk}/change/" in page(operator, name)
    page(operator, name.replace("_changelist", "_change"), row.pk)


@pytest.mark.parametrize("name", ["models_registry_provider", "models_registry_aimodel"])
def test_what_can_be_added_has_a_page_for_it(operator: Client, name: str) -> None:
    page(operator, f"{name}_add")


def test_what_people_wrote_is_escaped_everywhere(operator: Client, chat: Session) -> None:
    for name in ("session", "message", "turn", "contextrevision"):
        assert HOSTILE not in page(operator, f"chatcore_{name}_changelist")
    assert HOSTILE not in page(operator, "chatcore_session_change", chat.pk)
    for message in chat.messages.all():
        assert HOSTILE not in page(operator, "chatcore_message_change", message.pk)
    assert HOSTILE not in page(operator, "chatcore_contextrevision_change", chat.revisions.get().pk)


def test_a_message_can_be_read_and_not_changed(operator: Client, chat: Session) -> None:
    message = chat.messages.get(seq=3)
    url = reverse("admin:chatcore_message_change", args=[message.pk])
    assert 'name="content"' not in operator.get(url).content.decode()
    assert operator.post(url, {"content": "forged"}).status_code == 403
    assert (
        operator.post(
            reverse("admin:chatcore_message_delete", args=[message.pk]), {"post": "yes"}
        ).status_code
        == 403
    )
    assert operator.get(reverse("admin:chatcore_message_add")).status_code == 403
    message.refresh_from_db()
    assert message.content == "9"


def test_a_session_links_to_its_own_messages_turns_and_revisions(
    operator: Client, chat: Session, user: User
) -> None:
    stranger = Session.objects.create(owner=user)
    Message.objects.create(session=stranger, seq=1, role="user", content="words of another session")
    link = f"{reverse('admin:chatcore_message_changelist')}?session__id__exact={chat.pk}"
    assert link in page(operator, "chatcore_session_change", chat.pk)
    assert "words of another session" not in page(
        operator, "chatcore_message_changelist", query=f"?session__id__exact={chat.pk}"
    )


def test_context_state_is_shown_and_not_editable(operator: Client, chat: Session) -> None:
    html = page(operator, "chatcore_session_change", chat.pk)
    assert "We spoke of" in html
    assert 'name="compacted_summary"' not in html
    assert 'name="context_version"' not in html


def test_an_edit_keeps_what_was_counted_since_the_row_was_read(
    operator: Client, chat: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_form = SessionAdmin.save_form

    def store_a_message_first(self: SessionAdmin, *args: Any, **kwargs: Any) -> Any:
        append_message(chat.pk, None, role="user", content="Meanwhile")
        return save_form(self, *args, **kwargs)

    monkeypatch.setattr(SessionAdmin, "save_form", store_a_message_first)
    Session.objects.filter(pk=chat.pk).update(last_seq=3, message_count=3)
    assert chat.model
    fields = {"title": "Renamed", "model": chat.model.pk, "tools": "null", "params": "{}"}
    address = reverse("admin:chatcore_session_change", args=[chat.pk])
    assert operator.post(address, fields).status_code == 302
    after = Session.objects.get(pk=chat.pk)
    assert (after.title, after.last_seq, after.message_count) == ("Renamed", 4, 4)


def test_a_long_text_is_cut_in_lists(operator: Client, chat: Session) -> None:
    Message.objects.create(session=chat, seq=4, role="user", content="long " * 50_000)
    assert len(page(operator, "chatcore_message_changelist")) < 120_000


def test_clearing_the_summary_sends_the_full_history_again(operator: Client, chat: Session) -> None:
    operator.post(
        reverse("admin:chatcore_session_changelist"),
        {"action": "clear_summary", "_selected_action": [str(chat.pk)]},
    )
    chat.refresh_from_db()
    assert (chat.compacted_summary, chat.compact_boundary_seq, chat.context_version) == (
        None,
        None,
        2,
    )
    assert chat.messages.count() == 3


def test_deleting_a_session_counts_what_goes_and_deletes_it(
    operator: Client, chat: Session
) -> None:
    url = reverse("admin:chatcore_session_delete", args=[chat.pk])
    assert "Messages: 3" in operator.get(url).content.decode()
    operator.post(url, {"post": "yes"})
    assert not Session.objects.filter(pk=chat.pk).exists()


def queries(client: Client, name: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        page(client, name)
    return len(captured)


@pytest.mark.parametrize("name", ["session", "message", "turn", "contextrevision"])
def test_a_list_takes_as_many_queries_for_many_rows_as_for_few(
    operator: Client, chat: Session, name: str
) -> None:
    page(operator, f"chatcore_{name}_changelist")
    few = queries(operator, f"chatcore_{name}_changelist")
    for number in range(12):
        other = Session.objects.create(
            owner=User.objects.create_user(f"user-{number}"), model=chat.model
        )
        turn = Turn.objects.create(session=other, status="completed", lease_until=timezone.now())
        Message.objects.create(session=other, turn=turn, seq=1, role="user", content="hello")
        revisions.install_revision(
            other.pk, base_version=0, summary="s", boundary_seq=1, source="compaction"
        )
    assert queries(operator, f"chatcore_{name}_changelist") == few <= 10


@pytest.mark.parametrize(
    "name", ["models_registry_provider_changelist", "models_registry_aimodel_changelist"]
)
def test_registry_lists_take_few_queries(operator: Client, name: str) -> None:
    page(operator, name)
    assert queries(operator, name) <= 10


def test_an_outsider_is_sent_to_sign_in(client: Client, user: User) -> None:
    client.force_login(user)
    assert client.get(reverse("admin:chatcore_session_changelist")).status_code == 302


def test_only_its_pages_may_evaluate_and_no_page_runs_inline_scripts(operator: Client) -> None:
    policies = {path: operator.get(path)["Content-Security-Policy"] for path in ("/admin/", "/")}
    assert "script-src 'self' 'unsafe-eval';" in policies["/admin/"]
    assert "script-src 'self';" in policies["/"]
    outside = Client().get("/admin/login/")
    assert "unsafe-eval" not in outside["Content-Security-Policy"]
    assert "<script>" not in page(operator, "index")


def test_the_sidebar_has_subjects_and_plumbing_last(operator: Client) -> None:
    groups = operator.get("/admin/").context["sidebar_navigation"]
    titles = [str(group.get("title", "")) for group in groups]
    assert titles == [
        "",
        "Conversations",
        "Compaction",
        "Models and providers",
        "People",
        "Costs",
        "Plumbing",
    ]
    assert str(groups[1]["items"][0]["title"]) == "Sessions"
    html = page(operator, "index")
    drawn = set(re.findall(r'<use href="#(icon-\w+)">', html))
    assert (
        {"icon-chat", "icon-key", "icon-coins"}
        <= drawn
        <= set(re.findall(r'<symbol id="([\w-]+)"', html))
    )
    names = {model.__name__ for model in admin.site._registry}
    assert "Schedule" not in names


@pytest.mark.slow
def test_the_first_page_counts_today_and_each_number_leads_to_its_list(
    operator: Client, chat: Session, user: User
) -> None:
    Turn.objects.filter(session=chat).update(status="failed", error={"type": "provider_auth"})
    Budget.objects.create(amount=10, period="day", warning_percent=80)
    UsageSum.objects.create(
        day=timezone.now().date(), owner=user, model="acme/acme-1", cost_units=int(9 / COST_UNIT)
    )
    cards = {card["title"]: card for card in operator.get("/admin/").context["cards"]}
    assert cards["Failures today, by reason"]["rows"][0][:2] == ("provider_auth", "1")
    assert cards["Providers whose answers failed in the last hour"]["rows"][0][:2] == ("acme", "1")
    assert cards["Money by day (UTC)"]["rows"][0][1:4:2] == ("9.00", 100)
    assert cards["Budgets near their limit"]["rows"][0][1] == "90 %"
    assert cards["Compaction runs today"]["value"] == "0"
    for card in cards.values():
        for link in (card["link"], *(row[2] for row in card["rows"] if row[2])):
            assert operator.get(link).status_code == 200, link
    assert str(chat.turns.get().pk) in operator.get(cards["Turns today"]["rows"][0][2]).text


def test_the_first_page_has_only_what_its_reader_may_see(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_budget"))
    client = Client()
    client.force_login(user)
    cards = client.get("/admin/").context["cards"]
    assert [card["title"] for card in cards] == ["Budgets near their limit"]


def test_it_wears_the_colors_of_the_pages(operator: Client) -> None:
    page = operator.get("/admin/").content.decode()
    assert "chatcore/css/tokens" in page
    assert "chatcore/css/admin" in page


def test_a_provider_is_tested_from_its_page(
    operator: Client, model: AiModel, scripted: ScriptedModel
) -> None:
    address = reverse("admin:models_registry_provider_change", args=[model.provider.pk])
    assert "models-0-input_price" in operator.get(address).content.decode()
    test = reverse("admin:models_registry_provider_test", args=[model.provider.pk])
    assert test in operator.get(address).content.decode()
    scripted.script(Reply(text="OK"))
    answer = operator.post(test, follow=True)
    assert "scripted/test-model answered within" in answer.content.decode()
    scripted.script(Reply(status=401))
    assert [str(m.level_tag) for m in operator.post(test, follow=True).context["messages"]] == [
        "error"
    ]
    staff = User.objects.create_user("staff", is_staff=True)
    staff.user_permissions.add(Permission.objects.get(codename="change_provider"))
    client = Client()
    client.force_login(staff)
    assert test not in client.get(address).content.decode()
    assert client.post(test).status_code == 403
