"""The kinds of requests that the soak sends: each is a generator that does one round at a time.

A kind gets a client with a token of its own user. What it makes it takes away again where the API
has a way, so that whatever is left is growth; `ROWS` says what may be left.
"""

import http.client
import json
import re
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from websockets.sync.client import connect

from measure.soak.client import Client
from measure.soak.deployed import PASSWORD

API = "/api/v1"
MODEL = "soak/soak"
LEAVING_SECONDS = (0.0, 0.02, 0.06, 0.15, 0.4)
BIG_FILE = b"A line of a log that somebody attaches to a chat, 64 bytes long\n" * 80_000

Rounds = Generator[None]
Action = Callable[[Client], Rounds]


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What is sent, and what may be left of it.

    `rows`: how many rows of each table one request may leave. `ordered`: statuses from 500 on that
    the script orders. `is_short`: also part of the form for each push.
    """

    act: Action
    writes: bool = True
    rows: Mapping[str, float]
    ordered: frozenset[int] = frozenset()
    is_short: bool = False
    share: float = 1.0  # of the requests of its sort, for what takes long
    is_of_one_user: bool = False  # all clients have the same account
    free_mb: int = 20  # of a process: what is loaded, cached and fragmented late


KINDS: dict[str, Kind] = {}
# What a message leaves: itself and its answer, the turn, events, what was sent, words to find.
OF_TURNS = {
    "chatcore_message": 3.0,
    "chatcore_message_stems": 3.0,
    "chatcore_turn": 1.5,
    "chatcore_sessionevent": 30.0,
    "chatcore_sentrequest": 1.5,
    "chatcore_senttext": 3.0,
    "chatcore_contextrevision": 2.0,
    "compaction_compactionrun": 1.0,
    "compaction_runcall": 2.0,
    "compaction_sessionstate": 1.0,
    "chatcore_usagesum": 1.0,
}
OF_SESSIONS = {"chatcore_session": 1.0, "chatcore_sessionevent": 3.0, **OF_TURNS}
AUDIT = {"chatcore_auditentry": 2.0}
# One for a request of a client that names no conversation; a chore deletes it three days later.
HISTORIES = {"compat_historykey": 1.0}


def kind(**options: Any) -> Callable[[Action], Action]:
    """Add a function to KINDS under its name."""

    def add(act: Action) -> Action:
        KINDS[act.__name__] = Kind(act=act, **{"rows": {}, **options})
        return act

    return add


def open_session(client: Client, **fields: object) -> str:
    """Create a session and return its address."""
    return f"{API}/sessions/{client.post(f'{API}/sessions', fields)['id']}"


def say(client: Client, session: str, text: str = "short", **fields: Any) -> Any:
    """Send a message and return the answer's body."""
    return client.post(f"{session}/messages", {"content": text, **fields}).read()


@kind(rows={"chatcore_sessionevent": 2.0}, is_short=True)
def writes(client: Client) -> Rounds:
    """Change a session, and pin and unpin one of its messages."""
    session = open_session(client)
    client.post(f"{session}/messages/import", {"messages": [{"role": "user", "content": "Hello"}]})
    message = client.get(f"{session}/messages")["results"][0]["id"]
    while True:
        client.patch(session, {"title": client.name})
        client.post(f"{API}/messages/{message}/pin", {"pinned": True})
        client.post(f"{API}/messages/{message}/pin", {"pinned": False})
        yield


@kind(rows=OF_TURNS, is_short=True)
def chat(client: Client) -> Rounds:
    """Send messages and wait for the answers, in sessions that end."""
    while True:
        session = open_session(client)
        for _ in range(20):
            say(client, session)
            yield
        client.delete(session)


@kind(rows=OF_TURNS)
def chat_streamed(client: Client) -> Rounds:
    """Read the events of answers to their end."""
    while True:
        session = open_session(client)
        for _ in range(20):
            answer = client.post(f"{session}/messages", {"content": "short", "stream": True})
            assert b"turn.completed" in answer.body
            yield
        client.delete(session)


@kind(rows={**OF_SESSIONS, **HISTORIES}, is_short=True)
def left_early(client: Client) -> Rounds:
    """Leave answers of every API before their first word and after it."""
    say_long = [{"role": "user", "content": "a long answer"}]
    bodies: dict[str, dict[str, Any]] = {
        "/v1/chat/completions": {"messages": say_long},
        "/v1/messages": {"messages": say_long, "max_tokens": 100},
        "/v1/responses": {"input": say_long, "store": False},
        "/v1/completions": {"prompt": "a long answer"},
    }
    count = 0
    while True:
        for path, body in bodies.items():
            for stream in (True, False):
                after = LEAVING_SECONDS[count % len(LEAVING_SECONDS)]
                sent = {"model": MODEL, "stream": stream, **body}
                client.send_and_leave(path, sent, after=after)
                count += 1
        yield


@kind(rows={**OF_SESSIONS, "chatcore_storedresponse": 0.3})
def left_in_sessions(client: Client) -> Rounds:
    """Leave answers that are stored: those of /v1 stop, those of REST are cancelled."""
    while True:
        session = open_session(client)
        name = session.rsplit("/", 1)[1]
        body = {"model": MODEL, "stream": True}
        sent = body | {"messages": [{"role": "user", "content": "a long answer"}]}
        client.send_and_leave(
            "/v1/chat/completions", sent, after=0.1, headers={"X-Session-Id": name}
        )
        responses = body | {"input": "a long answer"}
        client.send_and_leave("/v1/responses", responses, after=0.1)
        client.post(f"{session}/cancel", expect=(200, 202, 204, 409))
        other = open_session(client)
        client.send_and_leave(
            f"{other}/messages", {"content": "a long answer", "stream": True}, after=0.05
        )
        client.post(f"{other}/cancel", expect=(200, 202, 204, 409))
        for each in (session, other):
            client.delete(each, expect=(204, 409))
        yield


@kind(rows=OF_TURNS)
def client_tools(client: Client) -> Rounds:
    """Answer a message by the result of a tool that the client runs."""
    tool = {"name": "look", "description": "Look.", "parameters": {"type": "object"}}
    while True:
        session = open_session(client)
        for _ in range(10):
            called = say(client, session, "use a tool", tools=[tool])["assistant_message"]
            call = called["tool_calls"][0]["id"]
            result = {"tool_call_id": call, "content": "Nothing there."}
            client.post(f"{session}/tool_results", {"results": [result]})
            yield
        client.delete(session)


@kind(rows=OF_SESSIONS)
def versions(client: Client) -> Rounds:
    """Edit, answer anew, restore, fork and delete messages."""
    while True:
        session = open_session(client)
        first = say(client, session)
        question = f"{API}/messages/{first['user_message']['id']}"
        answer = f"{API}/messages/{first['assistant_message']['id']}"
        fork = client.post(f"{answer}/fork", expect=(201,)).read()
        client.post(f"{answer}/regenerate")
        edited = client.patch(question, {"content": "another short one"}).read()
        client.get(f"{API}/messages/{edited['assistant_message']['id']}/request")
        client.post(f"{question}/restore", expect=(200, 409))
        client.delete(f"{API}/messages/{edited['assistant_message']['id']}")
        client.delete(f"{API}/sessions/{fork['id']}")
        client.delete(session)
        yield


@kind(rows={"chatcore_sessionevent": 3.0, "chatcore_session": 1.0})
def sessions(client: Client) -> Rounds:
    """Create, export, import and delete sessions; some are temporary."""
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello."}]
    while True:
        session = open_session(client, title="of the soak", system_prompt="Be short.")
        client.post(f"{session}/messages/import", {"messages": messages})
        exported = client.get(f"{session}/export").read()
        copy = client.post(f"{API}/sessions/import", exported).read()
        temporary = open_session(client, temporary=True)
        client.patch(session, {"archived": True})
        for each in (session, temporary, f"{API}/sessions/{copy['id']}"):
            client.delete(each)
        yield


@kind(rows=OF_SESSIONS, share=0.4)
def compactions(client: Client) -> Rounds:
    """Compact, look at the run, edit and reset the summary, go back and forth."""
    words = "Many words about one thing and another. " * 30
    messages = [
        {"role": role, "content": f"{number} {words}"}
        for number in range(12)
        for role in ("user", "assistant")
    ]
    while True:
        session = open_session(client)
        client.post(f"{session}/messages/import", {"messages": messages})
        run = client.post(f"{session}/compact", {"wait": True}).read()
        address = f"{API}/compactions/{run['id']}"
        for path in (address, f"{address}/calls", f"{address}/calls/1", f"{session}/compactions"):
            client.get(path, expect=(200, 404))
        client.post(f"{address}/cancel", expect=(200, 202, 409))
        client.patch(f"{session}/summary", {"summary": "Things were counted."})
        client.post(f"{session}/context/undo")
        client.post(f"{session}/context/redo")
        client.post(f"{session}/context/rewind", {"version": 0}, expect=(200, 409))
        client.post(f"{address}/rewind", expect=(200, 409))
        client.delete(f"{session}/summary", expect=(200, 204))
        client.delete(session)
        yield


@kind(rows=OF_SESSIONS, share=0.4)
def compactions_after_answers(client: Client) -> Rounds:
    """Fill the small window again and again, so that the worker compacts."""
    while True:
        session = open_session(client, model="soak/small")
        for _ in range(12):
            say(client, session, "short " * 60)
            yield
        client.delete(session)


@kind(rows={"chatcore_sessionevent": 1.0}, is_short=True, free_mb=150)
def uploads(client: Client) -> Rounds:
    """Upload files, every third of 5 MB, and delete them."""
    session = open_session(client)
    count = 0
    while True:
        data = BIG_FILE if count % 3 == 0 else b"A short file.\n" * 100
        count += 1
        client.upload(f"{API}/attachments/inspect", data[:100_000])
        file = client.upload(f"{session}/attachments", data)["id"]
        client.get(f"{session}/attachments")
        client.get(f"{API}/attachments/{file}")
        client.delete(f"{API}/attachments/{file}")
        yield


@kind(rows={"chatcore_sessionevent": 2.0})
def projects(client: Client) -> Rounds:
    """Projects with files, standing rules and prompts."""
    while True:
        project = f"{API}/projects/{client.post(f'{API}/projects', {'name': 'Soak'})['id']}"
        client.patch(project, {"instructions": "Be short."})
        file = client.upload(f"{project}/files", b"A file of a project.\n")["id"]
        for path in (project, f"{project}/files", f"{project}/files/{file}"):
            client.get(path)
        client.delete(f"{project}/files/{file}")
        rule = f"{API}/rules/{client.post(f'{API}/rules', {'text': 'Be kind.'})['id']}"
        client.patch(rule, {"text": "Be very kind."})
        client.get(rule)
        prompt = client.post(f"{API}/prompts", {"name": client.name, "text": "Say it."})["id"]
        client.patch(f"{API}/prompts/{prompt}", {"text": "Say it again."})
        client.get(f"{API}/prompts/{prompt}")
        for each in (f"{API}/prompts/{prompt}", rule, project):
            client.delete(each)
        yield


@kind(rows={**OF_SESSIONS, "chatcore_import": 2.0, "chatcore_importfile": 2.0}, share=0.4)
def imports(client: Client) -> Rounds:
    """Import archives, by one request and piece by piece."""
    chats = [{"id": "c", "title": "t", "messages": [{"role": "user", "content": "Hi"}]}]
    while True:
        body = {"format": "chatcore", "chats": chats}
        done = client.post(f"{API}/imports", body, expect=(200, 201, 202, 400)).read()
        files = [{"name": "a.json", "size": 2}]
        started = client.post(f"{API}/imports/uploads", {"files": files}).read()
        file = started["files"][0]
        path = f"{API}/imports/{started['id']}/files/{file['id']}"
        head = {"Content-Type": "application/octet-stream", "Content-Range": "bytes 0-1/2"}
        client.send("PUT", path, b"{}", headers=head, expect=(200, 201, 202, 204, 400, 409))
        for each in (started, done):
            if "id" in each:
                client.get(f"{API}/imports/{each['id']}")
                client.get(
                    f"{API}/imports/{each['id']}/problems/1/original", expect=(200, 404, 410)
                )
                client.delete(f"{API}/imports/{each['id']}", expect=(200, 204, 409))
        yield


@kind(rows={**OF_TURNS, **AUDIT}, share=0.4)
def tool_servers(client: Client) -> Rounds:
    """Tool servers: add one, refresh, approve and use its tool, delete; a dead one too."""
    address = f"{client.provider}/mcp"
    while True:
        added = client.post(
            f"{API}/mcp_servers", {"name": f"s{client.name}", "url": address}, expect=(201,)
        ).read()
        server = f"{API}/mcp_servers/{added['id']}"
        client.post(f"{server}/refresh")
        client.patch(server, {"require_approval": "never"}, expect=(200, 400))
        client.get(server)
        session = open_session(client)
        client.get(f"{session}/approvals")
        decision = {"approvals": [{"tool_call_id": "none", "decision": "once"}]}
        client.post(f"{session}/approvals", decision, expect=(400, 404, 409))
        client.delete(f"{session}/approvals", expect=(200, 204, 400, 404))
        client.delete(session)
        client.delete(server)
        yield


@kind(
    rows={**OF_SESSIONS, **AUDIT, "chatcore_webhookdelivery": 3.0},
    is_short=True,
)
def webhooks(client: Client) -> Rounds:
    """Turns that are announced to an address that answers and to one that does not."""
    provider = client.provider
    while True:
        hooks = [
            client.post(f"{API}/webhooks", {"url": f"{provider}/hooks/{name}"}, expect=(201, 400))
            for name in ("fine", "missing")
        ]
        made = [f"{API}/webhooks/{hook['id']}" for hook in hooks if hook.status == 201]
        session = open_session(client)
        try:
            for _ in range(10):
                say(client, session)
                yield
        finally:
            for hook in made:
                client.patch(hook, {"is_active": True})
                client.get(hook)
                client.get(f"{hook}/deliveries")
                client.delete(hook)
            client.delete(session)


@kind(rows={**AUDIT})
def tokens(client: Client) -> Rounds:
    """Make tokens, use them, and revoke them."""
    while True:
        made = client.post(f"{API}/tokens", {"name": client.name}).read()
        own = {"Authorization": f"Bearer {made['token']}"}
        client.get(f"{API}/models", headers=own)
        client.patch(f"{API}/tokens/{made['id']}", {"keeps_conversations": False})
        client.delete(f"{API}/tokens/{made['id']}", expect=(200, 204))
        client.get(f"{API}/models", headers=own, expect=(401,))
        yield


@kind(rows=AUDIT, is_of_one_user=True, share=0.6)
def tokens_kept(client: Client) -> Rounds:
    """Make more and more tokens of one user, up to the limit, and use the newest."""
    newest = client.token
    while True:
        made = client.post(f"{API}/tokens", {"name": client.name}, expect=(201, 409))
        newest = made["token"] if made.status == 201 else newest
        client.get(f"{API}/models", headers={"Authorization": f"Bearer {newest}"})
        yield


@kind(rows={"chatcore_sessionevent": 3.0, "chatcore_share": 1.0, **AUDIT, **OF_SESSIONS})
def shares(client: Client) -> Rounds:
    """Share a conversation, read it without a token, and take it back."""
    while True:
        session = open_session(client)
        messages = [{"role": "user", "content": "Hi"}]
        client.post(f"{session}/messages/import", {"messages": messages})
        share = client.post(f"{session}/shares").read()
        client.get(f"{API}/shares")
        client.delete(f"{API}/shares/{share['id']}")
        client.delete(session)
        yield


@kind(rows={"chatcore_sessionevent": 4.0, "compaction_ledgerline": 1.0, **OF_SESSIONS})
def memory(client: Client) -> Rounds:
    """The ledger of one policy, and the state and memory of another."""
    while True:
        session = open_session(client, policy="chatcore")
        line = client.post(f"{session}/ledger", {"kind": "rule", "text": "Be short."})["id"]
        client.patch(f"{session}/ledger/{line}", {"pinned": True})
        client.get(f"{session}/ledger/{line}")
        client.get(f"{session}/ledger")
        client.patch(f"{session}/rules", {"left_out": True}, expect=(200, 400))
        client.get(f"{session}/rules")
        client.delete(f"{session}/ledger/{line}")
        other = open_session(client, policy="lota")
        client.patch(f"{other}/state", {"state": {"tasks": ["Mine."]}}, expect=(200, 400))
        client.get(f"{other}/state")
        client.post(f"{other}/memory", {"text": "Mine."}, expect=(200, 201, 400))
        for each in (session, other):
            client.delete(each)
        yield


@kind(rows={**OF_SESSIONS, "chatcore_idempotencykey": 1.0})
def keys(client: Client) -> Rounds:
    """Send requests again with the same Idempotency-Key."""
    session = open_session(client)
    while True:
        for path, body in (
            (f"{session}/messages", {"content": "short"}),
            (f"{API}/sessions", {"title": "once"}),
        ):
            key = {"Idempotency-Key": uuid.uuid4().hex}
            first = client.post(path, body, headers=key)
            for _ in range(3):
                assert client.post(path, body, headers=key).read() == first.read()
            if path.endswith("/sessions"):
                client.delete(f"{path}/{first['id']}")
        yield


@kind(rows=HISTORIES, is_short=True)
def v1_chat(client: Client) -> Rounds:
    """Chat completions without a session, whole and as a stream."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "short"}]}
    while True:
        client.post("/v1/chat/completions", body)
        answer = client.post("/v1/chat/completions", body | {"stream": True})
        assert b"[DONE]" in answer.body
        yield


@kind(rows=OF_SESSIONS)
def v1_chat_session(client: Client) -> Rounds:
    """Chat completions with a memory, and one that diverges."""
    while True:
        name = {"X-Session-Id": uuid.uuid4().hex}
        messages: list[dict[str, str]] = []
        for _ in range(5):
            messages.append({"role": "user", "content": "short"})
            answer = client.post(
                "/v1/chat/completions", {"model": MODEL, "messages": messages}, headers=name
            )
            messages.append(answer["choices"][0]["message"])
        messages[1] = {"role": "assistant", "content": "Another one."}
        messages[4:] = [{"role": "user", "content": "short"}]
        client.post("/v1/chat/completions", {"model": MODEL, "messages": messages}, headers=name)
        [session] = client.get(f"{API}/sessions", query={"external_id": name["X-Session-Id"]})[
            "results"
        ]
        client.delete(f"{API}/sessions/{session['id']}")
        yield


@kind(rows=HISTORIES)
def v1_messages(client: Client) -> Rounds:
    """Anthropic's protocol."""
    body = {"model": MODEL, "max_tokens": 50, "messages": [{"role": "user", "content": "short"}]}
    while True:
        client.post("/v1/messages", body)
        client.post("/v1/messages", body | {"stream": True})
        del_max = {name: value for name, value in body.items() if name != "max_tokens"}
        client.post("/v1/messages/count_tokens", del_max)
        yield


@kind(rows={**OF_SESSIONS, "chatcore_storedresponse": 2.0, "chatcore_conversation": 1.0})
def v1_responses(client: Client) -> Rounds:
    """Responses: stored and continued, in the background, in conversations, not stored."""
    while True:
        first = client.post("/v1/responses", {"model": MODEL, "input": "short"})["id"]
        client.post(
            "/v1/responses", {"model": MODEL, "input": "short", "previous_response_id": first}
        )
        for path in (f"/v1/responses/{first}", f"/v1/responses/{first}/input_items"):
            client.get(path)
        later = client.post("/v1/responses", {"model": MODEL, "input": "long", "background": True})[
            "id"
        ]
        client.post(f"/v1/responses/{later}/cancel")
        for each in (first, later):
            client.delete(f"/v1/responses/{each}")
        client.post("/v1/responses", {"model": MODEL, "input": "short", "store": False})
        client.post("/v1/responses/input_tokens", {"model": MODEL, "input": "short"})
        client.post("/v1/responses/compact", {"model": MODEL, "input": "short " * 50})
        yield


@kind(rows={**OF_SESSIONS, "chatcore_conversation": 1.0})
def v1_conversations(client: Client) -> Rounds:
    """Conversations and their items."""
    item = {"type": "message", "role": "user", "content": "Hi"}
    while True:
        made = client.post("/v1/conversations", {"items": [item]})["id"]
        path = f"/v1/conversations/{made}"
        client.post(path, {"metadata": {"a": "b"}})
        client.post("/v1/responses", {"model": MODEL, "input": "short", "conversation": made})
        client.post(f"{path}/items", {"items": [item]})
        items = client.get(f"{path}/items")["data"]
        client.get(f"{path}/items/{items[0]['id']}")
        client.delete(f"{path}/items/{items[0]['id']}")
        client.get(path)
        client.delete(path)
        yield


@kind()
def v1_passed_on(client: Client) -> Rounds:
    """Embeddings and completions of a prompt."""
    while True:
        client.post("/v1/embeddings", {"model": MODEL, "input": "short"})
        client.post("/v1/completions", {"model": MODEL, "prompt": "short"})
        yield


@kind(rows={**OF_TURNS, **HISTORIES}, ordered=frozenset({502, 503, 504}), share=0.4)
def provider_fails(client: Client) -> Rounds:
    """A provider that refuses and one that breaks off."""
    while True:
        session = open_session(client)
        for text in ("fail", "reset", "short"):
            client.post(f"{session}/messages", {"content": text}, expect=(201, 502, 503, 504))
        sent = {"model": MODEL, "messages": [{"role": "user", "content": "fail"}]}
        client.post("/v1/chat/completions", sent, expect=(500, 502, 503, 504))
        client.delete(session)
        yield


@kind(rows={**AUDIT, "django_session": 1.0, "usersessions_usersession": 1.0}, share=0.1)
def sign_in(client: Client) -> Rounds:
    """Sign in with a password, read pages, and sign out."""
    while True:
        start_browsing(client)
        for path in ("/new/", "/chats/", "/settings/"):
            client.get(path)
        token = {"csrfmiddlewaretoken": client.cookies["csrftoken"]}
        send_form(client, "/logout/", token, expect=(302,))
        yield


def start_browsing(client: Client) -> None:
    """Sign in by the form of the page; from then on the client has cookies and no token."""
    client.token = ""
    client.cookies.clear()
    page = client.get("/login/", expect=(200,)).body.decode()
    field = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert field
    names = {"login": client.user, "username": client.user, "csrfmiddlewaretoken": field[1]}
    send_form(client, "/login/", names | {"password": PASSWORD}, expect=(302,))


def send_form(client: Client, path: str, fields: Mapping[str, str], **options: Any) -> None:
    """Send a form of a page."""
    head = {"Content-Type": "application/x-www-form-urlencoded", "Referer": client.address.geturl()}
    client.send("POST", path, urlencode(fields).encode(), headers=head, **options)


@kind(rows={**AUDIT, "django_admin_log": 1.0}, share=0.2)
def setup(client: Client) -> Rounds:
    """The document of the installation, and the test of a provider."""
    while True:
        client.get(f"{API}/setup")
        client.patch(f"{API}/setup", {"default_model": MODEL})
        client.post(f"{API}/setup/providers/soak/test")
        yield


@kind()
def preferences(client: Client) -> Rounds:
    """Choose a time zone and take it back."""
    while True:
        for zone in ("Europe/Berlin", ""):
            client.patch(f"{API}/preferences", {"time_zone": zone})
            assert client.get(f"{API}/preferences")["time_zone"] == zone
        yield


@kind(writes=False, is_short=True)
def reads(client: Client) -> Rounds:
    """A session and its messages, the context and the lists."""
    session = open_session(client)
    say(client, session, "short words to find")
    parts = ["", "/messages", "/context", "/context/preview", "/context/history"]
    parts += ["/context/missing", "/compactions", "/attachments", "/approvals", "/export"]
    lists = ["sessions", "models", "policies", "projects", "prompts", "rules", "shares"]
    lists += ["tokens", "webhooks", "mcp_servers", "usage"]
    while True:
        for part in parts:
            client.get(f"{session}{part}")
        for name in lists:
            client.get(f"{API}/{name}")
        client.get(f"{session}/search", query={"q": "words"})
        client.get(f"{API}/search", query={"q": "words"})
        client.get("/v1/models")
        client.get(f"/v1/models/{MODEL}")
        yield


@kind(writes=False)
def probes(client: Client) -> Rounds:
    """What a proxy and Prometheus ask."""
    while True:
        client.get("/livez")
        client.get("/readyz")
        client.get("/metrics", headers={"Authorization": "Bearer soak"})
        yield


@kind(writes=False, share=0.05, rows={**AUDIT})
def exports(client: Client) -> Rounds:
    """All that is a user's."""
    while True:
        client.get(f"{API}/export")
        yield


@kind(writes=False)
def events(client: Client) -> Rounds:
    """Streams of events that are dropped."""
    session = open_session(client)
    say(client, session)
    while True:
        head = {"Authorization": f"Bearer {client.token}"}
        leave_stream(client, f"{session}/events", head)
        yield


def leave_stream(client: Client, path: str, headers: Mapping[str, str]) -> None:
    """Open a stream of events, read the first ones, and leave."""
    start = time.monotonic()
    connection = http.client.HTTPConnection(
        str(client.address.hostname), client.address.port, timeout=60
    )
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        assert response.status == 200, response.status
        response.read(1)
    finally:
        connection.close()
    client.notes.note("GET", path, 200, time.monotonic() - start)


@kind(writes=False)
def mcp_server(client: Client) -> Rounds:
    """The tools that Chatcore offers to programs."""
    head = {"Accept": "application/json, text/event-stream"}
    count = 0
    while True:
        count += 1
        message = {"jsonrpc": "2.0", "id": count, "method": "tools/list", "params": {}}
        client.post("/mcp", message, headers=head)
        yield


@kind(writes=False, share=0.3)
def pages(client: Client) -> Rounds:
    """Pages of a chat and of the admin, as a browser that is signed in reads them."""
    session = open_session(client)
    say(client, session)
    name = session.rsplit("/", 1)[1]
    start_browsing(client)
    paths = ["/new/", "/chats/", f"/c/{name}/", f"/c/{name}/context/", f"/c/{name}/settings/"]
    paths += ["/settings/", "/projects/", "/admin/", "/admin/chatcore/session/"]
    while True:
        for path in paths:
            client.get(path, expect=(200,))
        yield


@kind(rows={**OF_SESSIONS, "chatcore_storedresponse": 1.0}, share=0.4)
def websocket(client: Client) -> Rounds:
    """Responses over a WebSocket, stored and not."""
    address = f"ws://{client.address.netloc}/v1/responses"
    head = {"Authorization": f"Bearer {client.token}"}
    body = {"type": "response.create", "model": MODEL, "input": "short"}
    while True:
        with connect(address, additional_headers=head) as socket:
            for store in (False, True):
                start = time.monotonic()
                socket.send(json.dumps(body | {"store": store}))
                while json.loads(socket.recv(timeout=60))["type"] != "response.completed":
                    pass
                client.notes.note("WS", "/v1/responses", 200, time.monotonic() - start)
        yield
