"""`chatcore sync_models`: bring the registry of language models up to the catalog."""

from typing import Any

from django.core.management.base import BaseCommand

from models_registry import catalog
from models_registry.models import AiModel


class Command(BaseCommand):
    help = (
        "Add and update the catalog's models and providers, and never overwrite an operator's edit."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        change_count = catalog.sync()
        usable_count = AiModel.objects.filter_usable().count()
        model_count = AiModel.objects.count()
        self.stdout.write(
            f"{change_count} rows written; {usable_count} of {model_count} models usable."
        )
