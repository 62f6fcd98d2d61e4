"""Create the database of a load: a program that prints who may send what, as JSON.

`python -m measure.benchmarks.load.people PROVIDER_URL PEOPLE SESSIONS` migrates the database that
the environment names and creates a model, and PEOPLE users with SESSIONS sessions each. It prints
`{"people": [[token, [session, …]], …]}`.
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


def main() -> None:
    """Migrate, create and print."""
    base_url, people, sessions = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    django.setup()
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    rows = create_people(base_url, people, sessions)
    print(json.dumps({"people": rows}))


if __name__ == "__main__":
    main()
