"""What the commands share that write an installation down."""

import json
from collections.abc import Iterable, Mapping

from django.core.management.base import BaseCommand, CommandError

from chatcore.setup.connection_test import call_provider
from chatcore.setup.documents import DEFAULT_MODEL, OPERATOR, apply_document
from chatcore.setup.sections import SetupRefused
from models_registry.models import AiModel, Provider


def parse_values(pairs: Iterable[str]) -> dict[str, object]:
    """Return values that are given as NAME=VALUE; what is no JSON is a text."""
    values: dict[str, object] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator:
            raise CommandError(f"{pair!r} is not NAME=VALUE.", returncode=2)
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def apply_values(
    section: str, name: str, values: Mapping[str, object], *, default: str | None = None
) -> str:
    """Set values of one thing; return the sentence that says what that changed."""
    try:
        changes = apply_document(
            {section: {name: values}, **({DEFAULT_MODEL: default} if default else {})}, OPERATOR
        )
    except SetupRefused as error:
        raise CommandError(str(error)) from None
    return f"{name} is set." if changes else f"{name} was so already."


def print_test(command: BaseCommand, provider: Provider, model: AiModel | None = None) -> bool:
    """Call a provider and print how that went; return whether it answered."""
    result = call_provider(provider, model=model)
    if "seconds" in result:
        command.stdout.write(f"{result['model']} answered in {result['seconds']:.1f} s.")
    else:
        command.stderr.write(f"{result.get('model', provider)}: {result['problem']}")
    for offered in result["offered"]:
        window = f"\t{offered.window} tokens" if offered.window else ""
        command.stdout.write(f"  it lists {provider}/{offered.name}{window}")
    return "seconds" in result
