"""Create the database of a load: a program that prints who may send what, as JSON.

`python -m measure.benchmarks.load.people PROVIDER_URL PEOPLE SESSIONS` migrates the database that
the environment names and creates a model, and PEOPLE users with SESSIONS sessions each. It prints
`{"people": [[token, [session, …]], …], "command": [the web server's command]}`; the port that it
listens at is the first argument that is "PORT".
"""

import json
import sys

import django
from django.core.management import call_command
from django.db import transaction


def create_people(base_url: str, people: int, sessions: int) -> list[tuple[str, list[str]]]:
    """Return the API token and the session ids of each new user."""
    from django.contrib.auth.models import User
    from knox.models import AuthToken

    from chatcore.models import Session
    from measure.benchmarks.sample_sessions import create_model

    model = create_model(base_url)
    rows = []
    with transaction.atomic():
        for place in range(people):
            user = User.objects.create_user(f"person-{place}")
            _, token = AuthToken.objects.create(user)
            ids = [str(Session.objects.create(owner=user, model=model).pk) for _ in range(sessions)]
            rows.append((token, ids))
    return rows


def build_web_command() -> list[str]:
    """Return the command of the product's own web process, with PORT as its port."""
    from chatcore.serving.processes import build_web_servers

    port = 12_345
    (child,) = build_web_servers("127.0.0.1", port, 1, on_answer=lambda: None)
    return ["PORT" if argument == str(port) else argument for argument in child.command]


def main() -> None:
    """Migrate, create and print."""
    base_url, people, sessions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    rows = create_people(base_url, people, sessions)
    print(json.dumps({"people": rows, "command": build_web_command()}))


if __name__ == "__main__":
    main()
