"""The clock of started processes, which a test moves (see clock_shim)."""

import os
from pathlib import Path

from tests.support.served_product import ROOT

DAY = 24 * 3600  # seconds


class Clock:
    """The clock of all processes of a product."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "clock"
        self.set(0)
        self.variables = {
            "CHATCORE_TEST_CLOCK": str(self._file),
            "PYTHONPATH": f"{ROOT / 'tests' / 'support' / 'clock_shim'}{os.pathsep}{ROOT}",
        }

    def set(self, days: float) -> None:
        """Let the clock be wrong by so many days from now on."""
        new_file = self._file.with_suffix(".new")
        new_file.write_text(str(days * DAY))
        new_file.replace(self._file)
