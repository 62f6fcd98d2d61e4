"""`chatcore list_models`: the language models that can be used, and whether they answer."""

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.management.setup_values import print_test
from chatcore.models import SetupEntry
from models_registry.models import AiModel, Provider


class Command(BaseCommand):
    help = "List the models that can be used, with their windows."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--test", action="store_true", help="Ask one model of each provider for a word."
        )

    def handle(self, *args: object, test: bool, **options: object) -> None:
        names_of_file = SetupEntry.objects.list_names("models")
        models = list(AiModel.objects.list_usable())
        for model in models:
            window = model.context_window_size
            notes = [
                f"{window} tokens" if window else "window unknown",
                *(["default"] if model.is_default else []),
                *(
                    ["no key"]
                    if model.provider.api_key_env and not model.provider.has_key()
                    else []
                ),
                *(["from the file"] if str(model) in names_of_file else []),
            ]
            self.stdout.write(f"{model}\t{', '.join(notes)}")
        if not models:
            self.stdout.write(
                "No model can be used. `chatcore add_provider NAME --base-url URL --test` shows"
                " what a server has, and `chatcore add_model PROVIDER/NAME` adds it."
            )
        if test:
            providers = Provider.objects.filter(is_active=True).order_by("name")
            answers = [print_test(self, provider) for provider in providers]
            if not all(answers):
                raise CommandError("Not every provider answers.")
