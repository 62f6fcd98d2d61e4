"""The pages in other languages: collected from the sources, kept in .po files, compiled to .mo; all without gettext's tools."""

import ast
import re
import struct
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.utils.translation.template import templatize

Key = tuple[str, ...]  # (msgid,) or (msgid, msgid_plural)
Catalog = dict[Key, tuple[str, ...]]  # to the translation, or one for each plural form

_STRING = r"""u?('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_CALL = re.compile(rf"\b(?:n?gettext|_)\(\s*{_STRING}(?:\s*,\s*{_STRING})?", re.DOTALL)
_FUNCTION_NAMES = {"_", "gettext", "gettext_lazy", "ngettext"}
_LINE = re.compile(r'^(msgid_plural|msgid|msgstr(?:\[\d\])?)? ?(".*")$')
_HEADER = (
    "Content-Type: text/plain; charset=UTF-8\nContent-Transfer-Encoding: 8bit\nLanguage: {language}\n"
    "Plural-Forms: nplurals=2; plural=(n != 1);\n"
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}


def find_keys(root: Path) -> set[Key]:
    """Everything that templates and modules under `root` mark for translation."""
    keys: set[Key] = set()
    for path in sorted((root / "templates").rglob("*.html")):
        keys.update(_find_template_keys(path.read_text()))
    for path in sorted((root / "chatcore").rglob("*.py")):
        keys.update(_find_module_keys(path.read_text()))
    return keys


def get_catalog_path(language: str) -> Path:
    """The .po file of a language."""
    return Path(settings.LOCALE_PATHS[0]) / language / "LC_MESSAGES" / "django.po"


def read_catalog(path: Path) -> Catalog:
    """A .po file's entries, without its header."""
    catalog: Catalog = {}
    for block in path.read_text().split("\n\n"):
        parts: dict[str, str] = {}
        name = ""
        for match in filter(None, map(_LINE.match, block.splitlines())):
            name = match[1] or name
            parts[name] = parts.get(name, "") + ast.literal_eval(match[2])
        if parts.get("msgid"):
            key = tuple(parts[name] for name in ("msgid", "msgid_plural") if name in parts)
            catalog[key] = tuple(text for name, text in parts.items() if name.startswith("msgstr"))
    return catalog


def write_catalog(path: Path, catalog: Catalog, language: str) -> None:
    """Store a .po file, sorted, and the .mo file beside it."""
    blocks = [f'msgid ""\nmsgstr {_quote_text(_HEADER.format(language=language))}']
    for key, texts in sorted(catalog.items()):
        lines = [
            f"msgid {_quote_text(key[0])}",
            *(f"msgid_plural {_quote_text(plural)}" for plural in key[1:]),
        ]
        plural = len(key) > 1
        lines += [
            f"msgstr[{number}] {_quote_text(text)}" if plural else f"msgstr {_quote_text(text)}"
            for number, text in enumerate(texts)
        ]
        blocks.append("\n".join(lines))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n\n".join(blocks) + "\n")
    path.with_suffix(".mo").write_bytes(compile_catalog(catalog, language))


def compile_catalog(catalog: Catalog, language: str) -> bytes:
    """The .mo file as GNU gettext describes it; what is not translated is left out."""
    entries = {"": _HEADER.format(language=language)} | {
        "\0".join(key): "\0".join(texts) for key, texts in catalog.items() if all(texts)
    }
    pairs = [
        (key.encode(), text.encode())
        for key, text in sorted(entries.items(), key=lambda entry: entry[0].encode())
    ]
    start = 28 + 16 * len(pairs)
    tables: list[bytes] = []
    strings = b""
    for column in (0, 1):
        for pair in pairs:
            tables.append(struct.pack("<II", len(pair[column]), start + len(strings)))
            strings += pair[column] + b"\0"
    header = struct.pack("<7I", 0x950412DE, 0, len(pairs), 28, 28 + 8 * len(pairs), 0, 28)
    return header + b"".join(tables) + strings


def update_catalog(language: str, root: Path) -> list[Key]:
    """Bring a language's files up to the sources; returns what has no translation yet."""
    path = get_catalog_path(language)
    old_catalog = read_catalog(path) if path.exists() else {}
    catalog = {key: old_catalog.get(key, ("",) * len(key)) for key in find_keys(root)}
    write_catalog(path, catalog, language)
    return sorted(key for key, texts in catalog.items() if not all(texts))


def _find_template_keys(source: str) -> Iterator[Key]:
    for match in _CALL.finditer(templatize(source)):
        yield tuple(ast.literal_eval(text).replace("\r\n", "\n") for text in match.groups() if text)


def _find_module_keys(source: str) -> Iterator[Key]:
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id in _FUNCTION_NAMES
        ):
            texts = [
                argument.value
                for argument in node.args
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
            if texts:
                yield tuple(texts[: 2 if node.func.id == "ngettext" else 1])


def _quote_text(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(letter, letter) for letter in text) + '"'
