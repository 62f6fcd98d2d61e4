"""First requests of one session that come at once, as of a program that tries again too early."""

from concurrent.futures import ThreadPoolExecutor

import openai
import pytest
from django.contrib.auth.models import User

from chatcore.models import Session
from models_registry.models import AiModel
from tests.conftest import Live
from tests.support.openai_client import MODEL, create_client
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply

pytestmark = pytest.mark.django_db(transaction=True)
AT_ONCE = 4
ROUNDS = 4


def test_one_of_them_is_answered_and_the_others_are_told_to_wait(
    live: Live, user: User, model: AiModel, scripted: ScriptedModel
) -> None:
    scripted.default = Reply(text="Hello.", delay=0.3)
    client = create_client(live.url, user)

    def ask(name: str) -> int:
        try:
            client.responses.create(model=MODEL, input="Hi", extra_headers={"X-Session-Id": name})
        except openai.APIStatusError as error:
            return error.status_code
        return 200

    for number in range(ROUNDS):
        with ThreadPoolExecutor(AT_ONCE) as threads:
            statuses = list(threads.map(ask, [f"talk-{number}"] * AT_ONCE))
        assert set(statuses) <= {200, 409}, statuses
        assert 200 in statuses
    assert Session.objects.count() == ROUNDS
