"""The floor: a chat as a good engineer writes it in an afternoon, with Django and the openai SDK.

A token of knox, two rows for each turn, `select_for_update` on the chat, the last 20 messages sent,
and nothing durable while an answer streams. `python -m measure.turn.floor PEOPLE SESSIONS` creates
its tables and prints who may send what, as JSON; uvicorn serves `measure.turn.floor:application`.
FLOOR_DATABASE_URL and FLOOR_PROVIDER_URL name its database and its provider.
"""

import json
import os
import sys
from collections.abc import AsyncIterator
from typing import Any

import django
import environ
from asgiref.sync import sync_to_async
from django.conf import settings

DATABASE = environ.Env.db_url_config(os.environ["FLOOR_DATABASE_URL"])
if DATABASE["ENGINE"].endswith("sqlite3"):
    DATABASE["OPTIONS"] = {
        "transaction_mode": "IMMEDIATE",
        "timeout": 20,
        "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;",
    }
else:
    DATABASE["OPTIONS"] = {"pool": {"min_size": 2, "max_size": 20}}
DATABASE["CONN_MAX_AGE"] = 0 if "pool" in DATABASE["OPTIONS"] else 600
settings.configure(
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF=__name__,
    SECRET_KEY="the floor guards nothing",
    MIDDLEWARE=[],
    USE_TZ=True,
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": DATABASE},
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "knox"],
    REST_KNOX={"AUTH_HEADER_PREFIX": "Bearer"},
)
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - the settings come first
from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection, models, transaction  # noqa: E402
from django.db.backends.signals import connection_created  # noqa: E402
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse  # noqa: E402
from django.urls import path  # noqa: E402
from knox.auth import TokenAuthentication  # noqa: E402
from knox.models import AuthToken  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402

SENT_MESSAGES = 20
statement_count = 0


class Chat(models.Model):  # noqa: DJ008 - nobody reads it
    objects: models.Manager["Chat"] = models.Manager()
    owner = models.ForeignKey(User, on_delete=models.CASCADE)

    class Meta:
        app_label = "floor"


class Message(models.Model):  # noqa: DJ008
    objects: models.Manager["Message"] = models.Manager()
    chat = models.ForeignKey(Chat, on_delete=models.CASCADE)
    role = models.CharField(max_length=16)
    content = models.TextField()
    at = models.DateTimeField(auto_now_add=True)

    class Meta:
        app_label = "floor"


def count_statement(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    global statement_count
    statement_count += 1
    return execute(sql, params, many, context)


def watch_connection(*, connection: Any, **_: Any) -> None:
    connection.execute_wrappers.append(count_statement)


connection_created.connect(watch_connection)


def find_client() -> AsyncOpenAI:
    """Return the client of this process, made at its first use."""
    global client
    if client is None:
        client = AsyncOpenAI(base_url=os.environ["FLOOR_PROVIDER_URL"], api_key="-")
    return client


client: AsyncOpenAI | None = None


def begin_turn(request: HttpRequest, chat_id: int, content: str) -> list[dict[str, str]]:
    """Store the question, and return what is sent."""
    user, _ = TokenAuthentication().authenticate(request)
    with transaction.atomic():
        chat = Chat.objects.select_for_update().get(pk=chat_id, owner=user)
        Message.objects.create(chat=chat, role="user", content=content)
        newest = Message.objects.filter(chat=chat).order_by("-pk")[:SENT_MESSAGES]
        return [{"role": row.role, "content": row.content} for row in reversed(newest)]


def end_turn(chat_id: int, text: str) -> None:
    """Store the answer."""
    with transaction.atomic():
        chat = Chat.objects.select_for_update().get(pk=chat_id)
        Message.objects.create(chat=chat, role="assistant", content=text)


async def answer(request: HttpRequest, chat_id: int) -> StreamingHttpResponse:
    """Answer a message with a stream of server-sent events."""
    content = json.loads(request.body)["content"]
    messages: Any = await sync_to_async(begin_turn)(request, chat_id, content)
    stream = await find_client().chat.completions.create(
        model="test-model", messages=messages, stream=True
    )

    async def read_answer() -> AsyncIterator[str]:
        parts: list[str] = []
        async for chunk in stream:
            text = chunk.choices[0].delta.content if chunk.choices else None
            if text:
                parts.append(text)
                yield f"data: {json.dumps({'choices': [{'delta': {'content': text}}]})}\n\n"
        await sync_to_async(end_turn)(chat_id, "".join(parts))
        yield "data: [DONE]\n\n"

    return StreamingHttpResponse(read_answer(), content_type="text/event-stream")


async def report_metrics(request: HttpRequest) -> HttpResponse:
    """Say how many statements this process has executed, in Chatcore's words."""
    return HttpResponse(f"chatcore_database_statement_seconds_count {statement_count}\n")


urlpatterns = [path("chats/<int:chat_id>", answer), path("metrics", report_metrics)]
application = get_asgi_application()


def create_people(people: int, sessions: int) -> list[tuple[str, list[str]]]:
    """Create the tables; return the token and the chats of each new user."""
    call_command("migrate", verbosity=0)
    with connection.schema_editor() as editor:
        editor.create_model(Chat)
        editor.create_model(Message)
    rows = []
    with transaction.atomic():
        for place in range(people):
            user = User.objects.create_user(f"person-{place}")
            _, token = AuthToken.objects.create(user)
            rows.append((token, [str(Chat.objects.create(owner=user).pk) for _ in range(sessions)]))
    return rows


if __name__ == "__main__":
    print(json.dumps({"people": create_people(int(sys.argv[1]), int(sys.argv[2]))}))
