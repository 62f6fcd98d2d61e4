"""The admin pages of compaction, one file a subject.

Django's autodiscovery imports this package, and each module registers its pages on import.
"""

from compaction.admin import policies, runs, session_state  # noqa: F401
