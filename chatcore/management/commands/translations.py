"""The pages in other languages, kept up to what they say."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from chatcore.web import translations


class Command(BaseCommand):
    """Collects, compiles, and names what is missing."""

    help = "Bring locale/ up to the templates and modules, compile it, and list what is not translated yet."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "languages",
            nargs="*",
            default=[code for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE],
        )

    def handle(self, *, languages: list[str], **options: Any) -> None:
        for language in languages:
            for key in translations.update_catalog(language, settings.BASE_DIR):
                self.stdout.write(f"{language}: {key[0]}")
