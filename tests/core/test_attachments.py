"""What is sent of the files of a request when they do not all fit."""

import pytest

from compaction.core.attachments import FileEntry, fit_files
from compaction.core.presets import PRESETS

NOTE = FileEntry(size=5, text="B.417", tokens=2)
BOOK = FileEntry(size=40_000, text="word " * 8_000, tokens=10_000)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_tiny_file_comes_whole_beside_one_that_is_cut(preset: str) -> None:
    note, book = fit_files([NOTE, BOOK], 2_000, PRESETS[preset].files)
    assert note == NOTE.text
    assert "left out" in book
    assert len(book) < 2_000 * 5


@pytest.mark.parametrize("preset", PRESETS)
def test_where_there_is_no_room_at_all_a_tiny_file_is_left_out_as_well(preset: str) -> None:
    assert all("left out" in text for text in fit_files([NOTE, BOOK], 1, PRESETS[preset].files))
