"""Ids of rows that come in the order of time.

New ids stand beside each other in an index, so it is smaller and fewer of its pages are written.
They tell when a row was made: nothing that acts as a secret has such an id.
"""

import sys
from uuid import UUID

if sys.version_info >= (3, 14):
    from uuid import uuid7
else:
    from uuid_utils.compat import uuid7


def make_row_id() -> UUID:
    """Return an id that is higher than those that this process made before."""
    return uuid7()
