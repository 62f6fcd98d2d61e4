"""Find where the beginning of one sequence stands in another, in linear time.

This is the algorithm of Knuth, Morris and Pratt: its time grows with the sum of both lengths.
"""

from collections.abc import Hashable, Iterator, Sequence


def find_overlaps(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Yield each length at which `client_keys` begins as `stored_keys` ends, longest first."""
    borders = _find_borders(client_keys)
    length = 0
    for length in measure_beginnings(client_keys, stored_keys):  # noqa: B007
        pass  # the last one counts: it ends where what is stored ends
    while length:
        yield length
        length = borders[length]


def measure_beginnings(
    client_keys: Sequence[Hashable], stored_keys: Sequence[Hashable]
) -> Iterator[int]:
    """Yield for each place of what is stored how long a beginning of `client_keys` ends there."""
    if not client_keys:
        return
    borders = _find_borders(client_keys)
    length = 0
    for key in stored_keys:
        while length and (length == len(client_keys) or client_keys[length] != key):
            length = borders[length]
        length += client_keys[length] == key
        yield length


def _find_borders(keys: Sequence[Hashable]) -> list[int]:
    """Return for each length of a beginning of `keys` its longest border.

    A border of a sequence is a shorter beginning of it that is also its end.
    """
    borders = [0] * (len(keys) + 1)
    length = 0
    for index in range(1, len(keys)):
        while length and keys[length] != keys[index]:
            length = borders[length]
        length += keys[length] == keys[index]
        borders[index + 1] = length
    return borders
