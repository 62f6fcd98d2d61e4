"""`chatcore sync_models`: bring the registry of models up to the catalog or a newer list."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from models_registry import catalog, comparison, sources
from models_registry.models import AiModel, Provider


class Command(BaseCommand):
    help = (
        "Add and update the catalog's models and providers, and never overwrite an operator's edit."
        " With --from, compare limits and abilities with a newer list instead."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--from",
            dest="place",
            metavar="PLACE",
            help="'models.dev', or the address or file of a list in the form of its api.json.",
        )
        parser.add_argument(
            "--write",
            action="store_true",
            help="With --from: write the differences. Without it they are only shown.",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        if options["place"]:
            self._compare(options["place"], should_write=options["write"])
            return
        if options["write"]:
            raise CommandError("--write needs --from: the catalog is always written.")
        change_count = catalog.sync()
        usable_count = AiModel.objects.filter_usable().count()
        model_count = AiModel.objects.count()
        self.stdout.write(
            f"{change_count} rows written; {usable_count} of {model_count} models usable."
        )

    def _compare(self, place: str, *, should_write: bool) -> None:
        provider_names = list(Provider.objects.values_list("name", flat=True).order_by("name"))
        address = sources.MODELS_DEV if place == "models.dev" else place
        try:
            listed_models = sources.parse_models_dev(
                sources.load_models_dev(address), provider_names
            )
        except sources.SourceUnreadable as error:
            raise CommandError(str(error)) from None
        result = comparison.compare(listed_models)
        for difference in result.differences:
            self.stdout.write(difference.describe())
        for name in result.unusable:
            self.stdout.write(f"{name} of the list cannot be used")
        self.stdout.write(
            f"{len(result.differences)} differences; {len(result.new_names)} models of the list"
            " are not in the registry."
        )
        if not should_write:
            if result.differences:
                self.stdout.write("Nothing was written. Add --write to take these values over.")
            return
        change_count = comparison.write_values(
            listed_models, source=place, date=timezone.now().date()
        )
        self.stdout.write(f"{change_count} models written.")
