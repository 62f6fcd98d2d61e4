"""The languages of recognition: each is one table of words and patterns."""

from compaction.memory.core.ledger.languages.base import Language
from compaction.memory.core.ledger.languages.english.words import ENGLISH
from compaction.memory.core.ledger.languages.german.words import GERMAN

LANGUAGES: tuple[Language, ...] = (ENGLISH, GERMAN)
