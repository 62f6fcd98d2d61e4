"""`chatcore rotate_keys`: encrypt every stored secret with the first encryption key."""

from django.core.management.base import BaseCommand, CommandError

from chatcore.base.databases.key_rotation import rotate_stored_secrets


class Command(BaseCommand):
    help = (
        "Encrypt every stored secret with the first key of CHATCORE_KEY_ENCRYPTION_KEYS. Put a new"
        " key before the old ones, restart all processes, run this, and then drop the old ones."
    )

    def handle(self, **options: object) -> None:
        rotation = rotate_stored_secrets()
        self.stdout.write(f"{rotation.rotated_count} secrets were encrypted with the first key.")
        if rotation.unreadable_names:
            raise CommandError(
                "No key opens these, which have to be entered again: "
                + ", ".join(rotation.unreadable_names)
            )
