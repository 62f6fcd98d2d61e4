"""What is stored of people's words is for them alone: on the server's disk, and on theirs."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chatcore.base.rest.pagination import Cursor
from chatcore.models import Message, Session
from chatcore.turns.messages import append_message

TOUCH_DATABASE = """
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE words (text)")
    cursor.execute("SELECT count(*) FROM words")
    import pathlib, django.conf
    print(*[path.name for path in pathlib.Path(django.conf.settings.DATA_DIR).iterdir()])
"""


@pytest.mark.slow
@pytest.mark.program
def test_the_data_folder_and_its_files_are_their_owners_alone(tmp_path: Path) -> None:
    folder = tmp_path / "var"
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("CHATCORE_")
    }
    environment |= {
        "CHATCORE_DATA_DIR": str(folder),
        "DJANGO_SETTINGS_MODULE": "chatcore.settings",
    }
    process = subprocess.run(
        [sys.executable, "-m", "chatcore", "shell", "--no-imports", "-c", TOUCH_DATABASE],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        umask=0o022,
    )
    assert "chatcore.sqlite3-wal" in process.stdout
    modes = {
        path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [folder, *folder.iterdir()]
    }
    assert "chatcore.sqlite3" in modes
    assert set(modes.values()) == {0}, modes


@pytest.mark.django_db
def test_no_browser_stores_a_page_or_an_answer_of_the_api(user: User, session: Session) -> None:
    client = Client()
    client.force_login(user)
    addresses = [
        "/",
        f"/c/{session.pk}/",
        f"/c/{session.pk}/messages/",
        "/settings/",
        "/search/?q=tea",
        "/admin/login/",
        f"/api/v1/sessions/{session.pk}",
        f"/api/v1/sessions/{session.pk}/messages",
        "/api/v1/nowhere",
        "/v1/models",
    ]
    for address in addresses:
        assert "no-store" in client.get(address).headers["Cache-Control"], address
    client.get("/static/chatcore/css/sign_in.css")
    assert "no-store" not in client.get("/static/chatcore/css/sign_in.css").headers["Cache-Control"]


@pytest.mark.django_db
def test_the_cursor_of_a_search_does_not_tell_how_much_others_write(
    user: User, session: Session
) -> None:
    client = Client()
    client.force_login(user)
    others = Session.objects.create(owner=User.objects.create_user("bob"))
    for _ in range(3):
        append_message(session.pk, None, role="user", content="a plover")
        append_message(others.pk, None, role="user", content="a plover")
    newest_id = Message.objects.latest("id").pk
    page = client.get("/api/v1/search?q=plover&limit=2").json()
    text = parse_qs(urlsplit(page["next"]).query)["cursor"][0]
    cursor = Cursor.decode(text)
    assert cursor.values[0] == "2"
    assert str(newest_id) not in cursor.values[1:]
    made_up = Cursor(["2", str(newest_id)]).encode()
    assert client.get(f"/api/v1/search?q=plover&cursor={made_up}").status_code == 400
    assert len(client.get(page["next"]).json()["results"]) == 1
