"""Store, change and delete prompts, for the page and for REST."""

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from django.db.models import Sum
from django.db.models.functions import Length

from chatcore.base.databases.person_lock import lock_person
from chatcore.base.keeping import refuse_if_kept, refuse_lost_words
from chatcore.contrib.prompts.models import MAX_PROMPTS, MAX_TOTAL_CHARS, Prompt


class NameTaken(Exception):
    """Another prompt of the person has this name."""


class TooManyPrompts(Exception):
    """The person has as many as anyone may have."""


class TextsTooLong(Exception):
    """The texts of all prompts of the person would be longer than they may be together."""


def save_prompt(prompt: Prompt, values: Mapping[str, Any]) -> Prompt:
    """Store a prompt, new or not, with these values.

    Raises NameTaken, TooManyPrompts, TextsTooLong, and Kept.
    """
    with transaction.atomic():
        lock_person(prompt.owner_id)
        own_prompts = Prompt.objects.filter(owner=prompt.owner_id)
        if prompt._state.adding:
            if own_prompts.count() >= MAX_PROMPTS:
                raise TooManyPrompts
        else:
            refuse_lost_words(prompt.owner_id, prompt, values)
        _check_total(prompt, values.get("text", ""))
        for name, value in values.items():
            setattr(prompt, name, value)
        # Under the lock, so the constraint has nothing to refuse, and PostgreSQL no error to log.
        if own_prompts.filter(name=prompt.name).exclude(pk=prompt.pk).exists():
            raise NameTaken
        prompt.save()
    return prompt


def _check_total(prompt: Prompt, text: str) -> None:
    others = Prompt.objects.filter(owner=prompt.owner_id).exclude(pk=prompt.pk)
    length = others.aggregate(length=Sum(Length("text")))["length"] or 0
    if text and length + len(text) > MAX_TOTAL_CHARS:
        raise TextsTooLong


def delete_prompt(prompt: Prompt) -> None:
    """Delete a prompt. Raises Kept if the owner's words must stay."""
    with transaction.atomic():
        refuse_if_kept(prompt.owner_id)
        prompt.delete()
