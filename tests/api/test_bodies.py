"""Bodies are refused before they are read; half-sent requests are closed; /livez just answers."""

import asyncio
import io
import zipfile
from typing import Any

import httpx2
import pytest
from django.contrib.auth.models import User
from django.test import Client
from knox.models import AuthToken
from rest_framework.test import APIClient

from chatcore.api import import_places
from chatcore.api.uploads import FORM_OVERHEAD_BYTES
from chatcore.files import intake
from chatcore.models import Session
from chatcore.projects.changes import create_project
from chatcore.serving import request_threads
from chatcore.serving.http_protocol import PatientHttpProtocol
from tests.conftest import Live
from tests.support.raw_http import RawConnection
from tests.support.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
MB = 1024 * 1024
IMPORT = "/api/v1/sessions/import"
PROBLEM = "application/problem+json"


@pytest.fixture
def token(user: User) -> str:
    return f"Bearer {AuthToken.objects.create(user)[1]}"


def announce(live: Live, path: str, size: int, **headers: str) -> tuple[int, str]:
    """Announce a body, send nothing of it, and return the answer."""
    with RawConnection(live.url) as connection:
        connection.send_head("POST", path, Content_Length=size, **headers)
        return connection.receive_response()


@pytest.mark.parametrize("sender", [{}, {"Authorization": "Bearer forged"}, {"Cookie": "a=b"}])
@pytest.mark.parametrize("path", [IMPORT, "/api/v1/sessions", "/api/nowhere"])
def test_nobody_may_send_a_large_body(live: Live, path: str, sender: dict[str, str]) -> None:
    status, text = announce(live, path, MB, **sender)
    assert (status, PROBLEM in text, "www-authenticate: Bearer" in text) == (401, True, True)


def test_nor_to_the_api_of_openai(live: Live) -> None:
    status, text = announce(live, "/v1/chat/completions", 50 * MB)
    assert (status, '"code": "invalid_api_key"' in text) == (401, True)


def test_a_page_takes_no_large_body_of_somebody_who_is_not_signed_in(live: Live) -> None:
    assert announce(live, "/login/", MB)[0] == 413


@pytest.mark.parametrize(
    ("path", "size"),
    [
        ("/api/v1/sessions", 2 * MB + 1),
        ("/api/v1/sessions/x/attachments", 11 * MB),
        (IMPORT, 50 * MB + 1),
        ("/v1/chat/completions", 50 * MB + 1),
        ("/settings/language/", 2 * MB + 1),
        ("/login/", 10_000 * MB),
    ],
)
def test_a_body_over_the_limit_of_its_route_is_413_before_it_is_sent(
    live: Live, token: str, path: str, size: int
) -> None:
    assert announce(live, path, size, Authorization=token)[0] == 413


@pytest.mark.parametrize("route", ["projects/{project}/files", "attachments/inspect"])
def test_each_route_of_files_takes_large_ones(
    live: Live, user: User, token: str, route: str
) -> None:
    project = create_project(user, {"name": "Plans"})
    path = "/api/v1/" + route.format(project=project.pk)
    size = intake.MAX_BYTES + 1
    assert announce(live, path, size + FORM_OVERHEAD_BYTES, Authorization=token)[0] == 413
    files = {"file": ("long.txt", b"a word\n" * 300_000)}
    headers = {"Authorization": token}
    answer = httpx2.post(f"{live.url}{path}", files=files, headers=headers, timeout=60)
    assert answer.status_code in (200, 201), answer.text


def test_a_form_with_too_many_fields_is_413_in_words(api: APIClient, client: Client) -> None:
    fields = {f"field{number}": "" for number in range(1_001)}
    answer = api.post("/api/v1/attachments/inspect", fields, format="multipart")
    assert (answer.status_code, answer.json()["type"]) == (413, "too_large")
    page = client.post("/login/", fields)
    assert (page.status_code, "too many fields" in page.content.decode()) == (413, True)


def test_a_client_that_waits_for_permission_does_not_get_it(live: Live) -> None:
    status, text = announce(live, IMPORT, MB, Expect="100-continue")
    assert (status, "connection: close" in text.lower()) == (401, True)


def test_chunks_of_nobody_are_refused_after_a_few(live: Live) -> None:
    with RawConnection(live.url) as connection:
        connection.send_head("POST", IMPORT, Transfer_Encoding="chunked")
        for _ in range(2):
            connection.send(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert connection.receive_response()[0] == 401


def test_a_signed_in_browser_may_send_them(live: Live, user: User, session: Session) -> None:
    browser = Client()
    browser.force_login(user)
    cookies = {"sessionid": browser.cookies["sessionid"].value, "csrftoken": "a" * 32}
    body = {"messages": [{"role": "user", "content": "x" * 200_000}] * 2}
    with httpx2.Client(base_url=live.url, cookies=cookies, timeout=60) as client:
        address = f"/api/v1/sessions/{session.pk}/messages/import"
        answer = client.post(address, json=body, headers={"X-CSRFToken": "a" * 32})
    assert (answer.status_code, answer.json().get("imported")) == (201, 2)


def test_what_is_sent_after_a_refusal_is_thrown_away_for_a_while(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the client's system would report a broken connection instead of the refusal."""
    monkeypatch.setattr(PatientHttpProtocol, "REFUSED_SECONDS", 1.0)
    with RawConnection(live.url) as connection:
        connection.send_head("POST", IMPORT, Content_Length=20 * MB)
        connection.send(b"x" * 4 * MB)
        assert connection.receive_response()[0] == 401
        assert connection.is_closed()


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /api/v1/sessions HT",
        b"POST /api/v1/sessions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 10\r\n\r\n{",
    ],
)
def test_a_half_sent_request_is_closed(
    live: Live, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(PatientHttpProtocol, "HEAD_SECONDS", 0.5)
    monkeypatch.setattr(PatientHttpProtocol, "BODY_SECONDS", 0.5)
    with RawConnection(live.url) as connection:
        connection.send(beginning)
        assert connection.is_closed()


def test_a_slow_body_that_goes_on_is_not(
    live: Live, token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals: list[float] = []
    start_deadline = PatientHttpProtocol._start_deadline

    def start_and_note(protocol: PatientHttpProtocol, seconds: float) -> None:
        start_deadline(protocol, seconds)
        renewals.append(seconds)

    monkeypatch.setattr(PatientHttpProtocol, "_start_deadline", start_and_note)
    monkeypatch.setattr(PatientHttpProtocol, "BODY_BYTES", 100)
    body = b'{"system_prompt": "' + b"x" * 999 + b'"}'
    with RawConnection(live.url) as connection:
        connection.send_head(
            "POST",
            "/api/v1/sessions",
            Content_Length=len(body),
            Content_Type="application/json",
            Authorization=token,
        )
        for start in range(0, len(body), 170):
            renewals.clear()
            connection.send(body[start : start + 170])
            wait_until(lambda: renewals, what="a deadline begun anew")
        assert connection.receive_response()[0] == 201


def test_a_stream_is_not_closed_by_these_clocks(
    live: Live, token: str, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HEAD_SECONDS", "BODY_SECONDS", "REFUSED_SECONDS"):
        monkeypatch.setattr(PatientHttpProtocol, name, 0.3)
    with RawConnection(live.url, timeout=1.5) as connection:
        connection.send_head("GET", f"/api/v1/sessions/{session.pk}/events", Authorization=token)
        assert not connection.is_closed()


def test_the_process_says_that_it_lives_while_django_is_stuck(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(request_threads, "django_application", hang)
    for path in ("/livez", "/livez/"):
        answer = httpx2.get(f"{live.url}{path}", headers={"Host": "evil.example"}, timeout=10)
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def pack(content: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("conversations.json", content)
    return file.getvalue()


BOMBS = {
    "empty objects": b"[" + b"{}," * 3_000_000 + b"{}]",
    "empty lists": b"[" + b"[]," * 3_000_000 + b"[]]",
    "broken texts": b'["' + b'\\"' * 500_000 + b"," * 3_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
@pytest.mark.parametrize("path", ["/api/v1/imports", IMPORT, "/v1/chat/completions"])
def test_a_body_of_too_many_values_is_refused_before_it_is_parsed(
    live: Live, token: str, path: str, name: str
) -> None:
    headers = {"Authorization": token, "Content-Type": "application/json"}
    answer = httpx2.post(live.url + path, content=BOMBS[name], headers=headers, timeout=60)
    # A text that does not end hides all that follows, and is no JSON.
    assert answer.status_code == (400 if name == "broken texts" else 413), answer.text
    if name != "broken texts":
        assert "values" in answer.text


def test_an_archive_of_too_many_values_is_refused_before_it_is_parsed(
    live: Live, token: str
) -> None:
    headers = {"Authorization": token, "Content-Type": "application/zip"}
    content = pack(BOMBS["empty objects"])
    assert len(content) < 20_000
    answer = httpx2.post(f"{live.url}/api/v1/imports", content=content, headers=headers, timeout=60)
    assert answer.status_code == 400
    assert "2,500,000 values" in answer.text


def test_a_page_may_send_a_large_body_with_its_token_only(user: User) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(user)
    client.get("/settings/")
    body = {"system_prompt": "a" * 1_500_000}  # longer than a prompt may be
    token = {"X-CSRFToken": client.cookies["csrftoken"].value}
    statuses = [
        client.post(
            "/api/v1/sessions", body, content_type="application/json", headers=headers
        ).status_code
        for headers in ({}, token)
    ]
    assert statuses == [403, 413]


def test_commas_in_texts_are_no_values(api: APIClient, session: Session) -> None:
    texts = [{"role": "user", "content": "a, b, c, " * 20_000} for _ in range(10)]
    answer = api.post(f"/api/v1/sessions/{session.pk}/messages/import", {"messages": texts})
    assert answer.status_code == 201


def test_a_person_has_one_large_import_at_a_time(api: APIClient, user: User) -> None:
    large = b" " * MB + b" {}"
    # Its place is taken by hand, because the end of a real one would be a race.
    with import_places._slots.take(user.pk, process_limit=4, user_limit=1):
        refused = api.post(IMPORT, large, content_type="application/json")
        assert (refused.status_code, refused.json()["type"]) == (429, "import_running")
        assert int(refused.headers["Retry-After"]) > 0
        assert api.post(IMPORT, {}).status_code == 400, "a small one is no matter"
    assert api.post(IMPORT, large, content_type="application/json").status_code == 400
    assert api.post(IMPORT, large, content_type="application/json").status_code == 400
