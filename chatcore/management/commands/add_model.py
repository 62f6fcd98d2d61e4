"""`chatcore add_model`: add a language model of a connected provider, or change one."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from chatcore.management.setup_values import apply_values, parse_values, print_test
from models_registry.models import AiModel


class Command(BaseCommand):
    help = (
        "Add the model PROVIDER/NAME, or change what is named. The same call again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="PROVIDER/NAME")
        parser.add_argument("--window", type=int, help="Its context window in tokens.")
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="Another value in JSON, as supports_tools=true or input_price=0.5.",
        )
        parser.add_argument("--default", action="store_true", help="New sessions start with it.")
        parser.add_argument("--test", action="store_true", help="Ask it for a word.")

    def handle(self, *args: object, name: str, **options: Any) -> None:
        values = parse_values(options["set"])
        if options["window"] is not None:
            values["context_window_size"] = options["window"]
        self.stdout.write(
            apply_values("models", name, values, default=name if options["default"] else None)
        )
        if options["test"]:
            provider_name, _, model_name = name.partition("/")
            model = AiModel.objects.get(provider__name=provider_name, name=model_name)
            print_test(self, model.provider, model)
