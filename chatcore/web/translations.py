"""Collect the texts of the web pages for translation, and read and write the catalogs with Babel.

Only developers need this module: the compiled catalogs are part of the repository, and Babel is a
development dependency. GNU gettext's programs, which `makemessages` runs, are not needed.
"""

from collections.abc import Collection, Generator, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from babel.messages.catalog import Catalog, Message
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir, extract_python
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.conf import settings
from django.utils.translation.template import templatize

KEYWORDS = {**DEFAULT_KEYWORDS, "gettext_lazy": None, "gettext_noop": None}
LINE_WIDTH = 100  # columns
FOLDERS = ("chatcore", "compaction", "templates")
EXTRACTORS = [
    ("**.html", "chatcore.web.translations:extract_template"),
    ("**.py", "python"),
]


def get_catalog_path(language: str) -> Path:
    """Return the path of a language's .po file; the .mo file is next to it."""
    return Path(settings.LOCALE_PATHS[0]) / language / "LC_MESSAGES" / "django.po"


def collect_texts(root: Path) -> Catalog:
    """Return every text that the templates and modules under `root` mark for translation."""
    catalog = Catalog(charset="utf-8")
    for folder in FOLDERS:
        texts = extract_from_dir(root / folder, EXTRACTORS, keywords=KEYWORDS)
        for _path, _line, message_id, comments, context in texts:
            catalog.add(message_id, auto_comments=comments, context=context)
    return catalog


def read_catalog(path: Path) -> Catalog:
    """Read a .po file."""
    with path.open("rb") as file:
        return read_po(file)


def write_catalog(path: Path, catalog: Catalog) -> None:
    """Write a .po file in alphabetical order, and the .mo file next to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        # Without the places in the sources, the file changes only when a text changes.
        write_po(
            file,
            catalog,
            width=LINE_WIDTH,
            no_location=True,
            sort_output=True,
            ignore_obsolete=True,
        )
    path.with_suffix(".mo").write_bytes(compile_catalog(catalog))


def compile_catalog(catalog: Catalog) -> bytes:
    """Return the content of the .mo file, without the texts that have no translation."""
    file = BytesIO()
    write_mo(file, catalog)
    return file.getvalue()


def update_catalog(language: str, root: Path) -> list[str]:
    """Bring a language's files up to the sources; return the texts that have no translation yet."""
    path = get_catalog_path(language)
    catalog = read_catalog(path) if path.exists() else _create_catalog(language)
    # A similar text is not a translation: a new text stays empty until somebody translates it.
    catalog.update(collect_texts(root), no_fuzzy_matching=True, update_creation_date=False)
    write_catalog(path, catalog)
    return sorted(find_untranslated_texts(catalog))


def find_untranslated_texts(catalog: Catalog) -> Iterator[str]:
    """Yield the texts without a translation; of a text with a plural, the singular."""
    for message in list_messages(catalog):
        singular, *_plural = _as_tuple(message.id)
        if not all(_as_tuple(message.string or "")):
            yield singular


def list_messages(catalog: Catalog) -> list[Message]:
    """Return the texts of a catalog, without its header."""
    return [message for message in catalog if message.id]


def extract_template(
    file: IO[bytes],
    keywords: Mapping[str, Any],
    comment_tags: Collection[str],
    options: Mapping[str, object],
) -> Generator[Any, None, None]:
    """Extract the texts of a Django template; Babel calls this for each file.

    Django rewrites the template as source in which only the calls of gettext remain. Its lines are
    indented like the template, which Python's tokenizer would refuse, so the indentation goes.
    """
    source = templatize(file.read().decode())
    lines = [line.strip() for line in source.splitlines()]
    python_file = BytesIO("\n".join(lines).encode())
    return extract_python(python_file, keywords, comment_tags, {})


def _create_catalog(language: str) -> Catalog:
    return Catalog(
        locale=language,
        header_comment="# The texts of the pages; `chatcore translations` updates this file.",
        project="Chatcore",
        version="1",
        msgid_bugs_address="the issues of the repository",
        last_translator="Chatcore",
        language_team="Chatcore",
        charset="utf-8",
        fuzzy=False,
    )


def _as_tuple(text: Any) -> tuple[str, ...]:
    """Return the singular and plural of a text, or only the text if it has no plural."""
    return (text,) if isinstance(text, str) else tuple(text)
