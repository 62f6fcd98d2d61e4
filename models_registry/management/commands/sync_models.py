"""Bring the registry of language models up to the catalog."""

from typing import Any

from django.core.management.base import BaseCommand

from models_registry import catalog
from models_registry.models import AiModel


class Command(BaseCommand):
    help = (
        "Catalog to registry: adds and updates models and providers, never over an operator's edit."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        changed = catalog.sync()
        self.stdout.write(
            f"{changed} rows written; {AiModel.objects.usable().count()} of {AiModel.objects.count()} models usable."
        )
