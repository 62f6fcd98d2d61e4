"""`chatcore move_files`: move stored files and outputs into the store, or back."""

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.base.databases.outages import StorageAway
from chatcore.files import moving, output_store


class Command(BaseCommand):
    help = (
        "Move files and whole outputs of tools that are in the database into the store that the"
        " settings name (CHATCORE_S3_BUCKET), and copy those of the folder 'outputs'. It can be"
        " stopped and started again, and nobody has to stop meanwhile."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--to-database", action="store_true", help="Move all of it into the database instead."
        )
        parser.add_argument(
            "--claim",
            action="store_true",
            help="Only note that the store is this database's, as after a restore; nothing moves.",
        )

    def handle(self, **options: object) -> None:
        if not output_store.has_store():
            raise CommandError('There is no store: the setting STORAGES has no "outputs".')
        try:
            if options["claim"]:
                output_store.claim_store()
                self.stdout.write("The store of files is this database's now.")
                return
            if options["to_database"]:
                self.stdout.write(f"{moving.move_to_database()} contents are in the database now.")
                return
            copied_count = moving.copy_folder(settings.DATA_DIR / "outputs")
            moved_count = moving.move_to_store()
        except StorageAway:
            raise CommandError("The storage does not answer; what was moved stays so.") from None
        except output_store.OutputLost:
            raise CommandError("A content is gone; `chatcore verify` names its session.") from None
        self.stdout.write(
            f"{moved_count} contents were moved from the database, and {copied_count} copied from"
            " the folder."
        )
