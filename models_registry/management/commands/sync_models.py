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
        change_count = catalog.sync()
        self.stdout.write(
            f"{change_count} rows written; {AiModel.objects.filter_usable().count()} of {AiModel.objects.count()} models usable."
        )
