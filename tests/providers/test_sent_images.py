"""Images as they are sent: as small as each server takes them, and not too many."""

import base64
import io
from typing import Any

import pytest
from PIL import Image as PillowImage
from rest_framework.test import APIClient

from chatcore.models import Session
from chatcore.providers.base import ChatMessage, Connection, Image
from chatcore.providers.sent_images import IMAGE_NOT_SHOWN, MAX_BYTES
from models_registry.models import AiModel, Provider
from tests.support.provider_calls import build_connection, collect_parts, join_text, make_request
from tests.support.scripted_model import ScriptedModel
from tests.support.scripted_wire import Reply
from tests.support.slow_params import mark_others_slow


def build_image(side: int, kind: str = "PNG", mode: str = "RGB") -> Image:
    """An image of noise, which no format makes small."""
    noise = PillowImage.effect_noise((side, side), 100).convert(mode)
    if mode == "RGBA":
        noise.putalpha(100)
    buffer = io.BytesIO()
    noise.save(buffer, kind)
    return Image(media_type=f"image/{kind.lower()}", data=buffer.getvalue())


def list_images(body: dict[str, Any]) -> list[tuple[str, bytes]]:
    """Return the type and the bytes of each image of a request, in either protocol."""
    parts = [
        part
        for message in body["messages"]
        if isinstance(message["content"], list)
        for part in message["content"]
    ]
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    sources = [part["source"] for part in parts if part["type"] == "image"]
    urls += [f"data:{source['media_type']};base64,{source['data']}" for source in sources]
    heads = [url.partition(";base64,") for url in urls]
    return [(head.removeprefix("data:"), base64.b64decode(data)) for head, _, data in heads]


async def send(scripted: ScriptedModel, protocol: str, *images: Image, **options: Any) -> Any:
    """Send one image a message over a new connection, and return the images as they arrived."""
    connection = build_connection(scripted, protocol, options={"dialect": options})
    return await send_over(connection, scripted, *images)


async def send_over(connection: Connection, scripted: ScriptedModel, *images: Image) -> Any:
    question = [
        message
        for image in images
        for message in (
            ChatMessage(role="user", content="Look.", images=(image,)),
            ChatMessage(role="assistant", content="Yes."),
        )
    ]
    question.append(ChatMessage(role="user", content="And?"))
    parts = await collect_parts(connection, make_request(*question))
    assert join_text(parts)
    return list_images(scripted.requests[-1].json)


@pytest.mark.slow
@pytest.mark.heavy
@pytest.mark.parametrize("protocol", mark_others_slow(["openai", "anthropic"]))
@pytest.mark.parametrize("mode", ["RGB", "RGBA"])
async def test_a_large_image_is_made_smaller_and_stays_the_same(
    mode: str, protocol: str, scripted: ScriptedModel
) -> None:
    image = build_image(2200, mode=mode)
    assert image.size > MAX_BYTES
    [first], [second] = [await send(scripted, protocol, image) for _ in range(2)]
    assert first == second
    media_type, data = first
    assert media_type == ("image/png" if mode == "RGBA" else "image/jpeg")
    assert len(base64.b64encode(data)) < 5_000_000
    assert max(PillowImage.open(io.BytesIO(data)).size) <= 2000


async def test_a_small_image_goes_as_it_is_also_if_nobody_can_read_it(
    scripted: ScriptedModel,
) -> None:
    small = build_image(20)
    broken = Image(media_type="image/png", data=b"\x89PNG" + b"x" * (MAX_BYTES + 1))
    sent = await send(scripted, "openai", small, broken)
    assert sent == [("image/png", small.data), ("image/png", broken.data)]


async def test_a_type_that_a_server_does_not_take_becomes_one_that_it_takes(
    scripted: ScriptedModel,
) -> None:
    image = build_image(20, "GIF")
    [(media_type, data)] = await send(scripted, "openai", image, image_types=["image/jpeg"])
    assert media_type == "image/jpeg"
    assert PillowImage.open(io.BytesIO(data)).size == (20, 20)


async def test_of_too_many_images_the_newest_are_sent(scripted: ScriptedModel) -> None:
    images = [build_image(side) for side in (20, 21, 22)]
    sent = await send(scripted, "openai", *images, max_images=2)
    assert [data for _, data in sent] == [image.data for image in images[1:]]
    assert IMAGE_NOT_SHOWN in str(scripted.requests[-1].json["messages"][0]["content"])


async def test_many_images_are_scaled_as_anthropic_wants_them(scripted: ScriptedModel) -> None:
    wide = build_image(20)
    picture = PillowImage.new("RGB", (3000, 10))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    long = Image(media_type="image/png", data=buffer.getvalue())
    few = await send(scripted, "anthropic", *[wide] * 3, long)
    many = await send(scripted, "anthropic", *[wide] * 20, long)
    assert few[-1][1] == long.data
    assert max(PillowImage.open(io.BytesIO(many[-1][1])).size) == 2000


@pytest.mark.parametrize(
    "refusal",
    ["At most 2 image(s) may be provided in one prompt.", "Too many images: the maximum is 2."],
)
async def test_a_number_of_images_is_learned_from_its_refusal(
    refusal: str, scripted: ScriptedModel
) -> None:
    def answer(body: dict[str, Any]) -> Reply:
        is_too_much = len(list_images(body)) > 2
        return Reply(status=400, text=refusal) if is_too_much else Reply(text="Three cats.")

    scripted.default = answer
    connection = build_connection(scripted, "openai")
    for _ in range(2):
        sent = await send_over(connection, scripted, *[build_image(20)] * 3)
        assert len(sent) == 2
    assert len(scripted.requests) == 3


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("count", "side"), [(20, 2100), (21, 2000)])
def test_wide_pictures_of_a_client_are_made_smaller_from_the_21st_on(
    count: int, side: int, session: Session, scripted: ScriptedModel, api: APIClient
) -> None:
    Provider.objects.update(protocol="anthropic", base_url=scripted.anthropic_base_url)
    AiModel.objects.update(supports_images=True, context_window_size=200_000)
    buffer = io.BytesIO()
    PillowImage.new("RGB", (2100, 10)).save(buffer, "PNG")
    data = base64.b64encode(buffer.getvalue()).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    picture = {"role": "user", "content": [{"type": "image", "source": source}]}
    turns = [picture, {"role": "assistant", "content": "I see."}] * count
    body = {
        "model": str(session.model),
        "max_tokens": 500,
        "messages": [*turns, {"role": "user", "content": "And?"}],
    }
    response = api.post("/v1/messages", body, format="json")
    assert response.status_code == 200, response.json()
    sent = list_images(scripted.requests[-1].json)
    sides = {max(PillowImage.open(io.BytesIO(each)).size) for _, each in sent}
    assert (len(sent), sides) == (count, {side})
