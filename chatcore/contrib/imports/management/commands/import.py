"""`chatcore import`: create sessions from what Chatcore or another product has exported."""

import io
import json
import sys
from collections.abc import Iterable
from pathlib import Path

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError, CommandParser

from chatcore.contrib.imports.chat_storing import count_projects
from chatcore.contrib.imports.export_files import (
    Export,
    Member,
    UnreadableExport,
    open_export,
    open_folder,
)
from chatcore.contrib.imports.runs import import_export
from chatcore.transfer import importer, reader
from chatcore.transfer.exporter import FORMAT

HEAD_BYTES = 200


class Command(BaseCommand):
    help = (
        "Create sessions from FILE: a session as `export` writes it, whose new id is printed, or an"
        " export of ChatGPT, Claude and other products, in one or several files or as a folder."
        " A - means standard input."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", nargs="+", help="A file, a folder, or -.")
        parser.add_argument(
            "--user", help="Whose sessions they become; needed when there is more than one user."
        )

    def handle(self, *args: object, file: list[str], user: str | None, **options: object) -> None:
        """Print the new session's id, or what became of the chats."""
        owner = _find_owner(user)
        try:
            members = [member for name in file for member in _list_members(name)]
            if len(members) == 1 and _is_own_session(members[0]):
                self._import_session(owner, members[0])
                return
            row = import_export(owner, Export(members))
        except OSError as error:
            raise CommandError(f"{error.filename} cannot be read: {error.strerror}") from None
        except UnreadableExport as error:
            raise CommandError(str(error)) from None
        for problem in row.problems.defer("original").iterator():
            kind = "in part" if problem.session_id else "not"
            self.stdout.write(f"{kind}: {problem.title or '-'}: {' '.join(problem.reasons)}")
        self.stdout.write(
            f"{row.came:,} came in, {row.partly:,} in part, {row.refused:,} not;"
            f" {row.known:,} were here already. Projects: {count_projects(row):,}."
        )

    def _import_session(self, owner: User, member: Member) -> None:
        try:
            with member.open() as stream:
                session = importer.import_session(owner, json.loads(stream.read()))
        except ValueError as error:
            raise CommandError(f"{member.name} cannot be read: {error}") from None
        except reader.InvalidImport as error:
            raise CommandError(f"{member.name}: {error}") from None
        self.stdout.write(str(session.pk))


def _list_members(name: str) -> Iterable[Member]:
    if name == "-":
        return open_export([("export.json", io.BytesIO(sys.stdin.buffer.read()))]).members
    path = Path(name)
    return (
        open_folder(path) if path.is_dir() else open_export([(path.name, path.open("rb"))]).members
    )


def _is_own_session(member: Member) -> bool:
    with member.open() as stream:
        head = stream.read(HEAD_BYTES).lstrip()
    return head.startswith(b"{") and FORMAT.encode() in head


def _find_owner(name: str | None) -> User:
    """Return the user with this name, or without a name the only user."""
    users = get_user_model()._default_manager.all()
    if name:
        user = users.filter(**{User.USERNAME_FIELD: name}).first()
        if user is None:
            raise CommandError(f"There is no user called {name}.")
        return user
    first_users = list(users[:2])
    if len(first_users) != 1:
        raise CommandError("Name the owner with --user.")
    return first_users[0]
