"""Check the setting COMPACTION, so that what is missing or wrong is named before it fails."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning

GUIDE = "docs/embedding.md shows a project with its settings."
PERIODS = ("CALL_DAYS", "RUN_DAYS")
NAMES = (
    *("BACKEND", "SESSION_MODEL", "POLICY", "AUTOMATIC", "THRESHOLD", "SUMMARY_MODEL"),
    "ADMIN_CLASS",
    *PERIODS,
)


def list_fatal_errors() -> list[CheckMessage]:
    """Return what is wrong with the setting so that not even the models can be defined."""
    compaction_settings = getattr(settings, "COMPACTION", None)
    if not isinstance(compaction_settings, Mapping):
        problem = "is missing" if compaction_settings is None else "must be a dictionary"
        return [
            Error(
                f"The setting COMPACTION {problem}.",
                hint=f"It needs BACKEND, SESSION_MODEL and POLICY. {GUIDE}",
                id="compaction.E004",
            )
        ]
    return _check_session_model_name(compaction_settings)


def list_value_errors() -> list[CheckMessage]:
    """Return which values of the setting are wrong, and which names it does not have."""
    values: Mapping[str, Any] = settings.COMPACTION
    return [*_check_types(values), *_check_names(values)]


def _check_session_model_name(values: Mapping[str, Any]) -> list[CheckMessage]:
    label = values.get("SESSION_MODEL")
    if isinstance(label, str) and label.count(".") == 1 and all(label.split(".")):
        return []
    problem = "is missing" if label is None else f"is {label!r}"
    return [
        Error(
            f'COMPACTION["SESSION_MODEL"] {problem}; it must be "app_label.Model".',
            hint=f"Name your model of a conversation, whose primary key is a UUID. {GUIDE}",
            id="compaction.E005",
        )
    ]


def _check_types(values: Mapping[str, Any]) -> list[CheckMessage]:
    sentences = []
    if not isinstance(values.get("AUTOMATIC", True), bool):
        sentences.append('COMPACTION["AUTOMATIC"] must be True or False.')
    if not _is_threshold(values.get("THRESHOLD")):
        sentences.append(
            'COMPACTION["THRESHOLD"] must be None, a share as 0.8, or a number of tokens.'
        )
    if not isinstance(values.get("SUMMARY_MODEL", ""), str):
        sentences.append('COMPACTION["SUMMARY_MODEL"] must be the name of a model, or empty.')
    if not isinstance(values.get("ADMIN_CLASS", ""), str):
        sentences.append('COMPACTION["ADMIN_CLASS"] must be the dotted path of a ModelAdmin.')
    sentences += [
        f'COMPACTION["{name}"] must be a number of days; 0 is for good.'
        for name in PERIODS
        if not _is_period(values.get(name, 0))
    ]
    return [Error(sentence, id="compaction.E007") for sentence in sentences]


def _is_threshold(threshold: object) -> bool:
    if threshold is None:
        return True
    if isinstance(threshold, float):
        return 0 < threshold <= 1
    return isinstance(threshold, int) and not isinstance(threshold, bool) and threshold > 0


def _is_period(days: object) -> bool:
    return isinstance(days, int) and not isinstance(days, bool) and days >= 0


def _check_names(values: Mapping[str, Any]) -> list[CheckMessage]:
    return [
        Warning(
            f'COMPACTION["{name}"] is no setting of compaction.',
            hint=f"There are {', '.join(NAMES)}.",
            id="compaction.W002",
        )
        for name in values
        if name not in NAMES
    ]
