"""Make the images of a request as small as its server takes them, and leave out what is too many.

A server that refuses one image refuses every later request of the session too, because each repeats
it. Nothing is lost: models look at about 1,600 pixels a side at most.
"""

import asyncio
import functools
import io
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from chatcore.base.extras import has_extra, log_missing
from chatcore.providers.base import ChatMessage, Image, Request
from chatcore.providers.dialects import Dialect

if TYPE_CHECKING:  # only who sends images needs it
    from PIL import Image as PillowImage

logger = logging.getLogger(__name__)

IMAGE_NOT_SHOWN = "(An image was attached here; it is not shown again.)"
# Bedrock's and Anthropic's limit of one image, 5 MB as base64 text, with something to spare.
MAX_BYTES = 3_700_000
MAX_TOTAL_BYTES = 20_000_000  # of one request; Anthropic takes 32 MB as base64 text, with the rest
MAX_SIDE = 8_000  # pixels
MANY_IMAGES = 20
MAX_SIDE_OF_MANY = 2_000  # Anthropic's for each of more than MANY_IMAGES images
_SCALED_SIDE = 2_000
_QUALITIES = (85, 70, 50)
_CACHED_IMAGES = 16


async def fit_images(request: Request, dialect: Dialect) -> Request:
    """Return a request whose images its server takes; the same one if it has none.

    On another thread, because to read a large image takes a quarter of a second of CPU.
    """
    if not any(message.images for message in request.messages):
        return request
    return await asyncio.to_thread(_fit_images, request, dialect)


def _fit_images(request: Request, dialect: Dialect) -> Request:
    count = sum(len(message.images) for message in request.messages)
    max_side = MAX_SIDE_OF_MANY if min(count, dialect.max_images) > MANY_IMAGES else MAX_SIDE
    types = frozenset(dialect.image_types)
    messages: list[ChatMessage] = []
    rest, rest_bytes = dialect.max_images, MAX_TOTAL_BYTES
    # The newest first: what has no place any more is old.
    for message in reversed(request.messages):
        kept_images: list[Image] = []
        for image in reversed(message.images):
            small_image = _fit_image(image, max_side, types)
            if rest <= 0 or small_image.size > rest_bytes:
                rest = 0
                break
            rest, rest_bytes = rest - 1, rest_bytes - small_image.size
            kept_images.insert(0, small_image)
        messages.append(_replace_images(message, kept_images))
    return replace(request, messages=messages[::-1])


def _replace_images(message: ChatMessage, images: Sequence[Image]) -> ChatMessage:
    if len(images) == len(message.images):
        return replace(message, images=tuple(images)) if images else message
    texts = (message.content, IMAGE_NOT_SHOWN)
    content = "\n\n".join(text for text in texts if text.strip())
    return replace(message, images=tuple(images), content=content)


def _fit_image(image: Image, max_side: int, types: frozenset[str]) -> Image:
    """Return an image that a server takes; as it is if it cannot be read, and the server says."""
    if not has_extra("documents"):
        log_missing("documents", "Images are sent as they are, and large ones may be refused")
        return image
    from PIL import Image as PillowImage

    if image.size <= MAX_BYTES and image.media_type in types and max_side == MAX_SIDE:
        return image
    try:
        return _convert_image(image.media_type, image.data, max_side, types)
    except (OSError, ValueError, SyntaxError, PillowImage.DecompressionBombError):
        logger.info("an image of the type %s cannot be made smaller", image.media_type)
        return image


# The same images are sent again and again, and the bytes must stay the same for a provider's cache.
@functools.lru_cache(maxsize=_CACHED_IMAGES)
def _convert_image(media_type: str, data: bytes, max_side: int, types: frozenset[str]) -> Image:
    from PIL import Image as PillowImage

    with PillowImage.open(io.BytesIO(data)) as picture:
        is_small = max(picture.size) <= max_side and len(data) <= MAX_BYTES
        if is_small and media_type in types:
            return Image(media_type=media_type, data=data)
        side = min(max_side, _SCALED_SIDE)
        picture.draft("RGB", (side, side))  # a JPEG is decoded at about this size
        return _encode_picture(picture, side)


def _encode_picture(picture: "PillowImage.Image", side: int) -> Image:
    """Return the first picture of an image: a PNG if it has clear places, else a JPEG."""
    from PIL import ImageOps

    picture = ImageOps.exif_transpose(picture)
    has_alpha = picture.has_transparency_data
    picture = picture.convert("RGBA" if has_alpha else "RGB")
    while True:
        picture.thumbnail((side, side))
        for quality in _QUALITIES:
            buffer = io.BytesIO()
            if has_alpha:
                picture.save(buffer, "PNG")
            else:
                picture.save(buffer, "JPEG", quality=quality)
            if len(buffer.getvalue()) <= MAX_BYTES:
                media_type = "image/png" if has_alpha else "image/jpeg"
                return Image(media_type=media_type, data=buffer.getvalue())
            if has_alpha:
                break
        side //= 2
