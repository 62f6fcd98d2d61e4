"""`chatcore drop_app`: write the rows of an app that can be absent into a file, and drop them."""

import os
import subprocess
import sys
from argparse import ArgumentParser
from pathlib import Path

from django.apps import apps
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from chatcore.base.databases.absent_apps import list_models, write_app_archive
from chatcore.extension import OPTIONAL_APPS, Extension, ExtensionConfig, OptionalApp


class Command(BaseCommand):
    help = (
        "Write the rows of APP into a new FILE, which `load_app` reads back, and drop its tables."
        " Stop everything else first. Then name APP in CHATCORE_WITHOUT."
    )
    requires_system_checks = ()  # one of them asks for this command

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("app", choices=[app.name for app in OPTIONAL_APPS])
        parser.add_argument(
            "file", type=Path, nargs="?", metavar="FILE", help="Where the rows go: APP.jsonl.gz."
        )
        parser.add_argument("--yes", action="store_true", help="Do not ask.")

    def handle(self, *, app: str, file: Path | None, yes: bool, **options: object) -> None:
        """Say what goes, ask, and drop it."""
        file = file or Path(f"{app}.jsonl.gz")
        optional_app = next(each for each in OPTIONAL_APPS if each.name == app)
        if not apps.is_installed(optional_app.path):
            self._run_with(optional_app, file, yes)
            return
        if not optional_app.tables:
            raise CommandError(f"{app} has no tables. CHATCORE_WITHOUT={app} is all it takes.")
        call_command("migrate", app, verbosity=0)
        if reason := _find_reason_to_stay(optional_app):
            raise CommandError(f"Nothing was dropped: {reason}")
        for model in list_models(optional_app):
            count = model._base_manager.count()
            self.stdout.write(f"{model._meta.db_table}: {count:,} rows")
        if not yes and input(f"Write them into {file} and drop them? [y/N] ").lower() != "y":
            raise CommandError("Nothing was dropped.")
        try:
            write_app_archive(optional_app, file)
        except OSError as error:
            raise CommandError(f"{file} cannot be written: {error.strerror}.") from None
        call_command("migrate", app, "zero", verbosity=0)
        self.stdout.write(
            f"{app} has no tables any more. Without {app} in CHATCORE_WITHOUT the next start makes"
            f" empty ones, and `chatcore load_app {app} {file}` brings the rows back."
        )

    def _run_with(self, app: OptionalApp, file: Path, yes: bool) -> None:
        """Run this command where the app is installed: only there its tables are known."""
        absent = [each.name for each in OPTIONAL_APPS if not apps.is_installed(each.path)]
        names = ",".join(name for name in absent if name != app.name)
        arguments = [app.name, str(file), *(["--yes"] if yes else [])]
        self.stdout.flush()
        process = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "chatcore", "drop_app", *arguments],
            env={**os.environ, "CHATCORE_WITHOUT": names},
            check=False,
        )
        if process.returncode:
            sys.exit(process.returncode)


def _find_reason_to_stay(app: OptionalApp) -> str:
    config = apps.get_app_config(app.name)
    if not isinstance(config, ExtensionConfig) or not config.extension:
        return ""
    extension: Extension = import_string(config.extension)()
    return extension.find_reason_to_stay()
