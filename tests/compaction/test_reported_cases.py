"""What people report of other systems that keep long conversations, and what holds here.

Each case has its number in the table of docs/reliability.md, which names the tests of the others.
"""

import base64
import io
import re
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from PIL import Image as PillowImage
from rest_framework.test import APIClient

from chatcore.models import Message, Session
from compaction.models import CompactionRun
from models_registry.models import AiModel, Provider
from tests.support.attachment_requests import say, upload
from tests.support.client_tool_requests import WEATHER, asking, bring
from tests.support.compaction_sessions import (
    SUMMARY,
    fill_session,
    list_chat_calls,
    list_summary_calls,
    run_queued_compactions,
    start_summary_in_thread,
    summarize_or_chat,
    use_anthropic,
)
from tests.support.frozen_talk import use_policy
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.thought_blocks import ORDERS, stream_blocks

pytestmark = pytest.mark.django_db(transaction=True)

WINDOW = 8_192
NAMES = ("Hanna", "Omar", "Lucia", "Pavel", "Mei")
VERBS = ("paid", "still owes")
THINGS = ("the hotel", "a used bicycle", "two tickets")
CITIES = ("Porto", "Gdansk", "Bergen", "Trieste")
QUESTION = "Which of the thirty cities has the best weather in May?"


@pytest.fixture(params=["oneclaw", "chatcore"])
def chat(request: pytest.FixtureRequest, session: Session, scripted: ScriptedModel) -> Session:
    use_policy(session, request.param)
    scripted.default = summarize_or_chat()
    return session


@pytest.fixture
def address(session: Session) -> str:
    return f"/api/v1/sessions/{session.pk}"


def send(api: APIClient, address: str, content: str, status: int = 201) -> dict[str, Any]:
    response = api.post(f"{address}/messages", {"content": content})
    assert response.status_code == status, response.json()
    body: dict[str, Any] = response.json()
    return body


def compact(api: APIClient, address: str, **body: object) -> dict[str, Any]:
    run: dict[str, Any] = api.post(f"{address}/compact", {"wait": True, **body}).json()
    return run


def bring_in(api: APIClient, address: str, *texts: str) -> None:
    """Import messages of user and model in turn."""
    roles = ("user", "assistant")
    messages = [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]
    response = api.post(f"{address}/messages/import", {"messages": messages}, format="json")
    assert response.status_code == 201, response.json()


def read_summary_calls(scripted: ScriptedModel) -> list[str]:
    return [str(call.json["messages"]) for call in list_summary_calls(scripted)]


def read_next_request(api: APIClient, address: str) -> str:
    preview = api.get(f"{address}/context/preview").json()
    return "\n".join([preview["system"], *(str(each["content"]) for each in preview["messages"])])


def test_09_the_newer_of_two_facts_comes_back_behind_the_older(
    session: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    use_policy(session, "chatcore")
    scripted.default = summarize_or_chat(summary=Reply(text="The user sends parcels."))
    older = "Our courier for the parcels is Veloce."
    newer = "From this month on our courier for the parcels is Kurierhaus."
    bring_in(api, address, older + " Thank you. " * 250, "Noted. " * 200)
    bring_in(api, address, newer + " Thank you. " * 250, "Noted. " * 200)
    bring_in(api, address, *["Another subject, the garden. " * 60] * 10)
    assert compact(api, address)["status"] == "applied"
    send(api, address, "Which courier takes our parcels?")
    request = str(list_chat_calls(scripted)[-1].json["messages"])
    assert newer in request
    assert older not in request or request.index(older) < request.index(newer)


def test_10_a_rule_that_is_said_six_times_stands_once(
    session: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    use_policy(session, "chatcore")
    summary = "The user asked how far each stage is: some ten kilometers."
    scripted.default = summarize_or_chat(summary=Reply(text=summary))
    rule = "Always give lengths in metric units."
    for number in range(6):
        bring_in(api, address, f"{rule} How far is stage {number}?", "Some ten kilometers. " * 230)
    bring_in(api, address, "And now something else. " * 100, "Gladly. " * 300)
    assert compact(api, address)["status"] == "applied"
    boundary = api.get(address).json()["compact_boundary_seq"]
    live_messages = Message.objects.filter(session=session, seq__gte=boundary)
    live_count = sum(rule in message.content for message in live_messages)
    assert read_next_request(api, address).count(rule) == 1 + live_count


def test_12_what_the_user_set_for_the_chat_stands_once_and_word_for_word(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    project = api.post("/api/v1/projects", {"name": "Trip", "instructions": "Use euros."}).json()
    api.patch(address, {"project": project["id"], "system_prompt": "Be brief, in Dutch."})
    for number in range(3):
        chat.refresh_from_db()
        fill_session(chat)
        assert compact(api, address)["status"] == "applied"
        if number == 1:
            api.patch(f"/api/v1/projects/{project['id']}", {"instructions": "Use pounds."})
        send(api, address, "And now?")
        request = str(list_chat_calls(scripted)[-1].json["messages"])
        instructions = "Use pounds." if number else "Use euros."
        assert request.count(instructions) == request.count("Be brief, in Dutch.") == 1
        assert number == 0 or "Use euros." not in request
    calls = "".join(read_summary_calls(scripted))
    assert "Use euros." not in calls
    assert "Be brief, in Dutch." not in calls


def test_16_a_rule_that_is_left_out_or_deleted_goes_along_no_more(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    rule = "Give all lengths in meters."
    added = api.post("/api/v1/rules", {"text": rule}, format="json")
    assert added.status_code == 201, added.json()
    fill_session(chat)
    for left_out, count in ((False, 1), (True, 0), (False, 1)):
        api.patch(f"{address}/rules", {"left_out": left_out})
        assert read_next_request(api, address).count(rule) == count
    assert compact(api, address)["status"] == "applied"
    assert read_next_request(api, address).count(rule) == 1
    assert api.delete(f"/api/v1/rules/{added.json()['id']}").status_code == 204
    send(api, address, "How far is it?")
    assert rule not in str(list_chat_calls(scripted)[-1].json["messages"])


def test_19_no_credential_of_a_tool_reaches_a_summary_model_of_another_provider(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str, model: AiModel
) -> None:
    secret = "AKIAIOSFODNN7EXAMPLE"
    with ScriptedModel() as other_server:
        other_server.default = Reply(text="The user looked at the settings of the cloud.")
        provider = Provider.objects.create(
            name="other", protocol="openai", base_url=other_server.base_url
        )
        writer = AiModel.objects.create(
            provider=provider, name="writer", context_window_size=WINDOW
        )
        AiModel.objects.filter(pk=model.pk).update(summary_model=writer)
        calls = [{"id": "c1", "name": "read", "arguments": '{"path": ".env"}'}]
        messages = [
            {"role": "user", "content": "Look at my settings. " + "Please. " * 300},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "c1", "tool_name": "read", "content": f"ID={secret}"},
            {"role": "assistant", "content": f"The key is {secret}. " + "Done. " * 600},
        ]
        imported = api.post(f"{address}/messages/import", {"messages": messages}, format="json")
        assert imported.status_code == 201, imported.json()
        bring_in(api, address, *["And the rest? " * 100] * 12)
        run = compact(api, address)
        assert run["status"] == "applied", run
        sent = str([request.json for request in other_server.requests])
    assert "<transcript>" in sent
    assert secret not in sent
    assert secret not in read_next_request(api, address)


def test_20_what_is_deleted_is_in_no_summary_and_no_later_request(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    secret = "The door opens with the code 80415."
    scripted.default = summarize_or_chat(summary=Reply(text=f"The trip to Lisbon. {secret}"))
    send(api, address, f"{secret} Always remember that.")
    chat.refresh_from_db()
    fill_session(chat)
    assert compact(api, address)["status"] == "applied"
    assert secret in read_next_request(api, address)
    scripted.default = summarize_or_chat(summary=Reply(text="The trip to Lisbon in May."))
    first = api.get(f"{address}/messages").json()["results"][0]
    assert api.delete(f"/api/v1/messages/{first['id']}").status_code == 204
    run_queued_compactions()
    assert "80415" not in read_next_request(api, address)
    for name in ("", "/messages", "/compactions", "/export"):
        assert "80415" not in api.get(f"{address}{name}").content.decode(), name


def test_24_a_message_larger_than_the_window_is_summarized_whole(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    marks = ("The first berth is A1.", "The middle berth is M5.", "The last berth is Z9.")
    filler = "The harbor was calm and nothing moved that day. " * 1_250  # 15,000 tokens
    bring_in(api, address, filler.join(marks), "A long report.")
    bring_in(api, address, *["What else? " * 120] * 8)
    run = compact(api, address)
    assert run["status"] == "applied", run
    calls = read_summary_calls(scripted)
    assert all(len(call) // 4 <= WINDOW for call in calls)
    for mark in marks:
        assert mark in "".join(calls)


def test_25_a_message_that_is_too_large_does_not_end_the_chat(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    summary = "The user's cat is called Miso."
    scripted.default = summarize_or_chat(summary=Reply(text=summary))
    send(api, address, "My cat is called Miso.")
    send(api, address, "x" * 40_000, status=413)
    for question in ("What is her name?", "And how old is she?"):
        send(api, address, question)
    request = str(list_chat_calls(scripted)[-1].json["messages"])
    assert "cat is called Miso." in request
    assert "What is her name?" in request


def test_28_code_in_a_summary_keeps_its_indentation(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    code = "```python\ndef pay(days):\n    if days > 3:\n        return 40\n    return 25\n```"
    summary = f"The user plans a trip to Lisbon. They agreed on this:\n{code}\nThe hotel is open."
    scripted.default = summarize_or_chat(summary=Reply(text=summary))
    bring_in(api, address, f"For the trip to Lisbon, let us use this:\n{code}", "Agreed.")
    for _ in range(3):
        chat.refresh_from_db()
        fill_session(chat)
        assert compact(api, address)["status"] == "applied"
        assert code in read_next_request(api, address)


def test_29_a_long_summary_is_shown_and_sent_whole(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    facts = [
        f"{name} {verb} {number * 37} euros for {thing} in {city}."
        for number, (name, verb, thing, city) in enumerate(
            product(NAMES, VERBS, THINGS, CITIES), start=11
        )
    ]
    for start in range(0, len(facts), 12):
        bring_in(api, address, " ".join(facts[start : start + 12]), "Fine. " * 300)
    bring_in(api, address, "And now? " * 200, "Now we rest. " * 300)
    AiModel.objects.update(context_window_size=32_768)
    summary = " ".join(facts)
    scripted.default = summarize_or_chat(summary=Reply(text=summary))
    run = compact(api, address, up_to_seq=20)
    assert run["status"] == "applied", run
    shown = api.get(address).json()["compacted_summary"]
    assert len(shown) > 2_000  # `chatcore` leaves sentences out of one that is as long as its text
    assert shown in read_next_request(api, address)
    assert chat.policy == "chatcore" or summary in shown


def test_31_the_focus_reaches_each_call(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    fill_session(chat, messages=44)
    run = compact(api, address, instructions="Keep each price in euros.")
    assert run["status"] == "applied", run
    calls = read_summary_calls(scripted)
    assert len(calls) > 2
    assert all("Keep each price in euros." in call for call in calls)


def test_33_a_compaction_is_stopped_while_the_model_writes(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    fill_session(chat)
    may_go_on = threading.Event()
    scripted.default = _hold_summaries(may_go_on)
    run_id = api.post(f"{address}/compact", {}).json()["id"]
    worker = start_summary_in_thread(CompactionRun.objects.get(pk=run_id), scripted)
    try:
        stopped = api.post(f"/api/v1/compactions/{run_id}/cancel")
        assert stopped.status_code == 200, stopped.json()
        send(api, address, "And the weather?")
    finally:
        may_go_on.set()
        worker.join(30)
    run_queued_compactions()
    assert api.get(f"/api/v1/compactions/{run_id}").json()["status"] == "skipped"
    assert CompactionRun.objects.count() == 1
    assert api.get(address).json()["compacted_summary"] is None
    assert compact(api, address)["status"] == "applied"


def test_35_a_message_that_is_sent_meanwhile_is_answered_and_known(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    fill_session(chat)
    may_go_on = threading.Event()
    scripted.default = _hold_summaries(may_go_on)
    run_id = api.post(f"{address}/compact", {}).json()["id"]
    worker = start_summary_in_thread(CompactionRun.objects.get(pk=run_id), scripted)
    try:
        send(api, address, "My seat is 14C.")
        assert worker.is_alive()  # the summary is still being written
    finally:
        may_go_on.set()
        worker.join(30)
    run_queued_compactions()
    assert [run.status for run in CompactionRun.objects.all()] == ["applied"]
    send(api, address, "Which seat do I have?")
    request = str(list_chat_calls(scripted)[-1].json["messages"])
    assert "My seat is 14C." in request
    assert "<conversation_summary>" in request


@pytest.mark.slow
def test_37_thirty_rounds_of_a_tool_lose_neither_the_question_nor_a_page(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    def ask_on(body: dict[str, Any]) -> Reply:
        if "<transcript>" in str(body["messages"]):
            return Reply(text="The weather of the cities so far is sunny and warm, in May too.")
        [number] = re.findall(r"Weather of city (\d+): ", str(body["messages"][-1])) or [-1]
        call = asking(f"City {int(number) + 1}", id=f"call_{int(number) + 1}")
        return Reply(text="City 7.") if number == "29" else Reply(tool_calls=[call])

    scripted.default = ask_on
    answer = api.post(f"{address}/messages", {"content": QUESTION, "tools": [WEATHER]}).json()
    for number in range(30):
        assert answer["status"] == "waiting", answer
        run_queued_compactions()
        page = f"Weather of city {number}: " + "sunny and warm, " * 190
        answer = bring(api, address, (f"call_{number}", page)).json()
    assert answer["status"] == "completed"
    requests = list_chat_calls(scripted)
    assert len(requests) == 31
    for request in requests:
        text = str(request.json["messages"])
        assert QUESTION in text
        assert len(text) // 4 <= WINDOW
        assert all(text.count(f"Weather of city {number}: ") <= 1 for number in range(30))
    assert CompactionRun.objects.filter(status="applied").count() >= 2


def test_44_four_clicks_are_one_run_and_one_call(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    fill_session(chat)
    runs = {api.post(f"{address}/compact", {}).json().get("id") for _ in range(4)} - {None}
    assert len(runs) == 1
    run_queued_compactions()
    assert len(list_summary_calls(scripted)) == 1
    again = compact(api, address)
    assert again["status"] == "skipped", again
    assert again["reason"]
    assert len(list_summary_calls(scripted)) == 1


def test_45_no_message_is_read_for_a_second_summary(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    for _ in range(6):
        chat.refresh_from_db()
        fill_session(chat, messages=10)
        run = compact(api, address)
        assert run["status"] == "applied", run
    calls = "".join(read_summary_calls(scripted))
    chat.refresh_from_db()
    summarized = range(1, chat.compact_boundary_seq or 0)
    assert len(summarized) > 40
    for seq in summarized:
        assert calls.count(f"{seq:04d} lisbon") == 1


def test_46_a_number_of_tokens_is_the_threshold_of_this_chat(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    AiModel.objects.update(context_window_size=128_000)
    fill_session(chat, messages=9)
    send(api, address, "Below it, nothing happens.")
    assert not CompactionRun.objects.exists()
    assert api.patch(address, {"compact_threshold": 6_000}).status_code == 200
    assert api.get(f"{address}/context").json()["threshold_tokens"] == 6_000
    fill_session(Session.objects.get(pk=chat.pk), messages=8)
    send(api, address, "Now it is more.")
    run_queued_compactions()
    assert [run.status for run in CompactionRun.objects.all()] == ["applied"]
    context = api.get(f"{address}/context").json()
    assert context["estimated_input_tokens"] < 6_000
    assert context["breakdown"]["conversation_history"] < 3_000  # the tail is smaller too


def test_the_blocks_of_a_signed_answer_come_back_in_their_order(
    chat: Session, scripted: ScriptedModel, api: APIClient, address: str
) -> None:
    use_anthropic(chat, scripted)
    for blocks in ORDERS:
        scripted.script(stream_blocks(blocks), Reply(text="Sunny."))
        answer = api.post(f"{address}/messages", {"content": "Weather?", "tools": [WEATHER]}).json()
        assert answer["status"] == "waiting", answer
        calls = answer["assistant_message"]["tool_calls"]
        bring(api, address, *((call["id"], "Sun.") for call in calls))
        sent = scripted.requests[-1].json["messages"][-2]["content"]
        bare = [{name: block[name] for name in block if name != "id"} for block in sent]
        wanted = [block for block in blocks if block.get("text") != " "]
        assert [without_cache_mark(block) for block in bare] == wanted


@pytest.mark.slow
def test_the_21st_wide_picture_makes_all_of_them_smaller(
    chat: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    use_anthropic(chat, scripted)
    AiModel.objects.update(supports_images=True, context_window_size=200_000)
    buffer = io.BytesIO()
    PillowImage.new("RGB", (2100, 10)).save(buffer, "PNG")
    for number in range(1, 22):
        uploaded = upload(api, chat, buffer.getvalue(), f"{number}.png").json()
        assert say(api, chat, [uploaded["id"]]).status_code == 201
        if number in (20, 21):
            sides = {max(PillowImage.open(io.BytesIO(data)).size) for data in list_images(scripted)}
            assert sides == {2100 if number == 20 else 2000}


def without_cache_mark(block: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in block.items() if name != "cache_control"}


def list_images(scripted: ScriptedModel) -> list[bytes]:
    """Return the images of the newest request."""
    contents = [message["content"] for message in scripted.requests[-1].json["messages"]]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [base64.b64decode(b["source"]["data"]) for b in blocks if b["type"] == "image"]


def _hold_summaries(may_go_on: threading.Event) -> Callable[[dict[str, Any]], Reply]:
    def answer(body: dict[str, Any]) -> Reply:
        if "<transcript>" not in str(body["messages"]):
            return Reply(text="Noted.")
        may_go_on.wait(20)
        return Reply(text=SUMMARY)

    return answer
