"""Store, change and delete prompts, for the page and for REST."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from chatcore.contrib.prompts.models import MAX_PROMPTS, Prompt
from chatcore.sessions.keeping import refuse_if_kept, refuse_lost_words


class NameTaken(Exception):
    """Another prompt of the person has this name."""


class TooManyPrompts(Exception):
    """The person has as many as anyone may have."""


def save_prompt(prompt: Prompt, values: Mapping[str, Any]) -> Prompt:
    """Store a prompt, new or not, with these values. Raises NameTaken, TooManyPrompts, and Kept."""
    is_new = prompt._state.adding
    if is_new and Prompt.objects.filter(owner=prompt.owner_id).count() >= MAX_PROMPTS:
        raise TooManyPrompts
    if not is_new:
        refuse_lost_words(prompt.owner_id, prompt, values)
    for name, value in values.items():
        setattr(prompt, name, value)
    try:
        with transaction.atomic():
            prompt.save()
    except IntegrityError:
        raise NameTaken from None
    return prompt


def delete_prompt(prompt: Prompt) -> None:
    """Delete a prompt. Raises Kept if the owner's words must stay."""
    with transaction.atomic():
        refuse_if_kept(prompt.owner_id)
        prompt.delete()
