"""`chatcore add_provider`: connect an endpoint of language models, or change one."""

import sys
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.management.setup_values import apply_values, parse_values, print_test
from models_registry.models import Provider


class Command(BaseCommand):
    help = (
        "Connect the provider NAME, or change what is named. The same call again changes nothing."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="As vllm: lower-case letters, digits, - and _.")
        parser.add_argument("--base-url", help="As http://10.0.0.7:8000/v1.")
        parser.add_argument("--protocol", choices=Provider.Protocol.values)
        key = parser.add_mutually_exclusive_group()
        key.add_argument("--key-env", metavar="VARIABLE", help="The variable that holds the key.")
        key.add_argument(
            "--key-stdin", action="store_true", help="Read the key from standard input; it is kept."
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            metavar="NAME=VALUE",
            help="Another value in JSON, as timeout_seconds=300 or is_active=false.",
        )
        parser.add_argument("--test", action="store_true", help="Call it, and list its models.")

    def handle(self, *args: object, name: str, **options: Any) -> None:
        named = {
            "base_url": options["base_url"],
            "protocol": options["protocol"],
            "api_key_env": options["key_env"],
        }
        values = {key: value for key, value in named.items() if value is not None}
        values |= parse_values(options["set"])
        if options["key_stdin"]:
            values["api_key"] = sys.stdin.readline().strip()
            if not values["api_key"]:
                raise CommandError("There is no key on standard input.")
        self.stdout.write(apply_values("providers", name, values))
        if options["test"]:
            print_test(self, Provider.objects.get(name=name))
