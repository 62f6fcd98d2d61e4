"""`chatcore translations`: bring the translations of the web pages up to their texts."""

from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError


class Command(BaseCommand):
    help = (
        "Update the files in chatcore/web/locale/ from the templates and modules, compile them,"
        " and print the texts that have no translation yet."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        other_languages = [
            code for code, _name in settings.LANGUAGES if code != settings.LANGUAGE_CODE
        ]
        parser.add_argument("languages", nargs="*", default=other_languages)

    def handle(self, *, languages: list[str], **options: object) -> None:
        """Print one line a text, with its language."""
        try:
            from chatcore.web import translations
        except ModuleNotFoundError:
            raise CommandError(
                "Babel is not installed; `bin/setup requirements-dev.lock` installs it."
            ) from None
        for language in languages:
            for text in translations.update_catalog(language, settings.BASE_DIR):
                self.stdout.write(f"{language}: {text}")
