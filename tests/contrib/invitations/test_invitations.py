"""Links that let somebody make one account, once and for some days."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from chatcore.contrib.invitations.links import create_invitation
from chatcore.contrib.invitations.models import Invitation

pytestmark = pytest.mark.django_db
PASSWORD = "a longer password than before"


@pytest.fixture
def by_invitation(settings: Any) -> None:
    settings.SIGN_UP = "invitation"


def sign_up(client: Client, name: str = "carol") -> Any:
    return client.post("/account/sign-up/", {"username": name, "password1": PASSWORD})


def test_a_closed_server_takes_no_invitation_and_makes_none(client: Client) -> None:
    _, path = create_invitation(made_by=None)
    page = client.get(path)
    assert page.status_code == 403
    assert "Your invitation stays as it is" in page.content.decode()
    with pytest.raises(CommandError, match="CHATCORE_SIGN_UP"):
        call_command("invite")


def test_an_invitation_makes_one_account(client: Client, by_invitation: None) -> None:
    writers = Group.objects.create(name="Writers")
    invitation, path = create_invitation(made_by=None, groups=[writers])
    assert client.get(path).headers["Location"] == "/account/sign-up/"
    assert sign_up(client).status_code == 302
    carol = User.objects.get()
    assert client.get("/settings/").status_code == 200
    assert list(carol.groups.all()) == [writers]
    invitation.refresh_from_db()
    assert invitation.used_by == carol
    assert Client().get(path).status_code == 410


@pytest.mark.parametrize("change", ["left the group", "deactivated", "none"])
def test_an_invitation_gives_what_its_maker_may_still_give(
    client: Client, user: User, by_invitation: None, change: str
) -> None:
    writers = Group.objects.create(name="Writers")
    user.groups.add(writers)
    _, path = create_invitation(made_by=user, groups=[writers])
    if change == "left the group":
        user.groups.clear()
    User.objects.filter(pk=user.pk).update(is_active=change != "deactivated")
    client.get(path)
    assert sign_up(client).status_code == 302
    carol = User.objects.get(username="carol")
    assert carol.groups.exists() == (change == "none")


def test_of_two_who_use_one_link_the_second_is_refused(by_invitation: None) -> None:
    _, path = create_invitation(made_by=None)
    clients = [Client(), Client()]
    for client in clients:
        client.get(path)
    assert sign_up(clients[0], "carol").status_code == 302
    sign_up(clients[1], "dave")
    assert list(User.objects.values_list("username", flat=True)) == ["carol"]


def test_an_invitation_ends_after_its_days(client: Client, by_invitation: None) -> None:
    _, path = create_invitation(made_by=None, days=3)
    with time_machine.travel(timezone.now() + timedelta(days=3, minutes=1)):
        assert client.get(path).status_code == 410


def test_a_link_is_not_stored(by_invitation: None) -> None:
    invitation, path = create_invitation(made_by=None)
    assert path.split("/")[-2] not in str(vars(Invitation.objects.get(pk=invitation.pk)))


@pytest.mark.django_db(transaction=True)
def test_groups_of_invitations_come_back_with_them(tmp_path: Path) -> None:
    names = ("Writers", "Gone")
    create_invitation(made_by=None, groups=[Group.objects.create(name=name) for name in names])
    archive = tmp_path / "invitations.jsonl.gz"
    try:
        call_command("drop_app", "invitations", archive, yes=True, verbosity=0)
    finally:
        call_command("migrate", verbosity=0)
    Group.objects.get(name="Gone").delete()
    call_command("load_app", "invitations", archive, verbosity=0)
    assert [group.name for group in Invitation.objects.get().groups.all()] == ["Writers"]
