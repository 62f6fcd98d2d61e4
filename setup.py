"""Put the site's pages into the wheel: they stand at the top, and belong to chatcore."""

from pathlib import Path
from typing import Any

from setuptools import setup
from setuptools.command.build_py import build_py

PAGES = Path(__file__).parent / "templates"


class BuildWithPages(build_py):
    """Copies templates/ to chatcore/templates, where chatcore/settings.py looks for it."""

    def run(self) -> None:
        """Build the modules, and add the pages to them."""
        super().run()
        if not self.editable_mode:
            self.copy_tree(str(PAGES), self._target)

    def get_source_files(self) -> list[str]:
        """Return the files that an archive of the sources needs."""
        sources: list[str] = super().get_source_files()
        return sources + [str(page.relative_to(PAGES.parent)) for page in _list_pages()]

    def get_outputs(self, include_bytecode: Any = 1) -> list[str]:
        """Return the files that are built, for the list of what is installed."""
        outputs: list[str] = super().get_outputs(include_bytecode)
        return outputs + [
            str(Path(self._target, page.relative_to(PAGES))) for page in _list_pages()
        ]

    @property
    def _target(self) -> str:
        return str(Path(self.build_lib, "chatcore", "templates"))


def _list_pages() -> list[Path]:
    return [path for path in PAGES.rglob("*") if path.is_file()]


setup(cmdclass={"build_py": BuildWithPages})
