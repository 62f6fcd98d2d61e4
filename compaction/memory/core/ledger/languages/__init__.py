"""The languages of recognition, each a file of tables. Another is a file more, and listed here."""

from compaction.memory.core.ledger.languages.base import Language
from compaction.memory.core.ledger.languages.english import ENGLISH
from compaction.memory.core.ledger.languages.german import GERMAN

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)
