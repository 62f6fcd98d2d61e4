"""Erase a person: the account with everything that belongs to it, and prove that it is gone.

The audit log keeps that it was done, and the person's number in what they did, without a name.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from allauth.account.models import EmailAddress
from allauth.usersessions.models import UserSession
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.contrib.auth import SESSION_KEY, get_user_model
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session as BrowserSession
from django.db import transaction
from django.db.models import Model, Q, QuerySet
from django.db.models.fields.reverse_related import ForeignObjectRel
from knox.models import AuthToken

from chatcore.accounts import audit
from chatcore.extension import list_keepers
from chatcore.models import Session
from chatcore.search.erasure import ErasureChore
from chatcore.sessions.deletion import delete_session, purge_session

BATCH_SIZE = 500  # keys of one query


class AccountKept(Exception):
    """An account must stay; the text says why, to operators."""


@dataclass(frozen=True)
class Erasure:
    """What was erased: rows by table before, and those that are left, which should be none."""

    rows: dict[str, int]
    rows_left: dict[str, int]


def erase_user(user: User, *, by: object = None) -> Erasure:
    """Erase a user and everything of theirs; return the counts.

    It works in short transactions, sessions first, so it can be repeated where it was cut off.
    Raises AccountKept for somebody whose account must stay.
    """
    if keepers := list_keepers([user.pk]):
        raise AccountKept("; ".join(keepers))
    pk, words = user.pk, _list_words(user)
    rows = _count_rows(pk, words)
    _shut_out(user, words)
    _forget_acts_of_staff(pk)
    for session_id in list(Session.all_objects.filter(owner=pk).values_list("pk", flat=True)):
        delete_session(session_id)
        purge_session(session_id)
    with transaction.atomic():
        gone = [
            f"{count} {model._meta.verbose_name_plural}"
            for model, name in _list_models_of_people()
            if (count := model._base_manager.filter(**{name: pk}).count())
        ]
        for related_rows in _list_rows_by_words(pk, words).values():
            related_rows.delete()
        get_user_model()._default_manager.get(pk=pk).delete()
        audit.record(
            "user.erased",
            object_type=get_user_model()._meta.label_lower,
            object_id=pk,
            detail=", ".join([f"{rows.get('chatcore.session', 0)} sessions", *gone]),
            actor=by,
        )
    ErasureChore().erase()
    return Erasure(rows, {table: count for table, count in _count_rows(pk, words).items() if count})


def _list_words(user: User) -> list[str]:
    """Return what the person signs in by: the name, and the addresses, verified or not."""
    addresses = EmailAddress.objects.filter(user=user).values_list("email", flat=True)
    return [word for word in {user.get_username(), user.email, *addresses} if word]


def _list_rows_by_words(user_pk: object, words: list[str]) -> dict[str, QuerySet[Model]]:
    """Return the rows that know the person without a foreign key, or whose note names whom."""
    was_typed = Q.create([("username__iexact", word) for word in words], Q.OR)
    is_named = Q(pk__in=_find_log_of(words))
    is_row_of_user = Q(object_id=str(user_pk), content_type__model="user")
    going_with = {
        model._meta.label_lower: model._base_manager.filter(**{name: user_pk})
        for model, name in _list_models_of_people()
    }
    return going_with | {
        "axes.accessattempt": AccessAttempt.objects.filter(was_typed),
        "axes.accessfailurelog": AccessFailureLog.objects.filter(was_typed),
        "axes.accesslog": AccessLog.objects.filter(was_typed),
        "admin.logentry": LogEntry.objects.filter(is_row_of_user | is_named),
    }


def _list_models_of_people() -> list[tuple[type[Model], str]]:
    """Return each model that names fields in `goes_with_people`, with each of the fields."""
    return [
        (model, name)
        for model in apps.get_models()
        for name in getattr(model, "goes_with_people", ())
    ]


def _find_log_of(words: list[str]) -> list[int]:
    """Find what the admin's log says by name of the person's rows, which may be gone.

    The words must stand alone, and the row be of a kind that belongs to people: else the log of
    what "Believe" is would go with eve.
    """
    kinds = [
        model
        for model in apps.get_models(include_auto_created=True)
        if any(field.related_model is get_user_model() for field in model._meta.fields)
    ]
    types = ContentType.objects.get_for_models(get_user_model(), *kinds).values()
    any_word = "|".join(map(re.escape, words))
    name = re.compile(rf"(?<![\w@.+-])(?:{any_word})(?![\w@+-]|\.\w)", re.IGNORECASE)
    rows = LogEntry.objects.filter(
        Q.create([("object_repr__icontains", word) for word in words], Q.OR),
        content_type__in=types,
    )
    return [
        pk for pk, text in rows.values_list("pk", "object_repr").iterator() if name.search(text)
    ]


def _forget_acts_of_staff(user_pk: object) -> None:
    """Delete what the admin's log says of the person's rows: it has their titles and names."""
    tables: list[tuple[type[Model], str]] = [(Session, "owner")]
    tables += list_owned_tables(get_user_model())
    for model, field_name in tables:
        pks = model._base_manager.filter(**{field_name: user_pk}).values_list("pk", flat=True)
        rows = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(model))
        logged_pks = set(rows.values_list("object_id", flat=True))
        if logged_pks:
            owned = [str(pk) for pk in pks.iterator() if str(pk) in logged_pks]
            with transaction.atomic():
                for start in range(0, len(owned), BATCH_SIZE):
                    rows.filter(object_id__in=owned[start : start + BATCH_SIZE]).delete()


def _shut_out(user: User, words: list[str]) -> None:
    """Sign the person out everywhere, so that nothing new comes."""
    with transaction.atomic():
        get_user_model()._default_manager.filter(pk=user.pk).update(is_active=False)
        AuthToken.objects.filter(user=user).delete()
        for row in UserSession.objects.filter(user=user):
            row.end()
    # A browser that stopped before the second factor has a session that nobody is signed in to.
    marks = {str(user.pk), *(word.lower() for word in words)}
    for browser in BrowserSession.objects.iterator():
        data = browser.get_decoded()
        if data.get(SESSION_KEY) == str(user.pk) or _has_mark(data, marks):
            browser.delete()


def _has_mark(data: Mapping[str, object], marks: set[str]) -> bool:
    """Return whether a sign-in that was not finished, or a record of one, is about the person."""
    names = ("account_login", "account_authentication_methods", "account_user")
    return any(_contains(data.get(name), marks) for name in names)


def _contains(value: object, marks: set[str]) -> bool:
    if isinstance(value, dict):
        return any(_contains(part, marks) for part in value.values())
    if isinstance(value, list):
        return any(_contains(part, marks) for part in value)
    return isinstance(value, str) and value.lower() in marks


def _count_rows(user_pk: int, words: list[str]) -> dict[str, int]:
    """Return how many rows of each table belong to the person with this number."""
    rows_by_words = _list_rows_by_words(user_pk, words)
    user_model = get_user_model()
    counts = {
        user_model._meta.label_lower: user_model._default_manager.filter(pk=user_pk).count(),
        "chatcore.session": Session.all_objects.filter(owner=user_pk).count(),
    }
    for model, field_name in list_owned_tables(user_model):
        if not getattr(model, "outlives_people", False):
            label = f"{model._meta.label_lower}.{field_name}"
            counts[label] = model._base_manager.filter(**{field_name: user_pk}).count()
    return counts | {label: rows.count() for label, rows in rows_by_words.items()}


def _goes_with_session(relation: ForeignObjectRel) -> bool:
    fields = relation.related_model._meta.fields
    has_session = any(field.related_model is Session for field in fields)
    return has_session and not getattr(relation.field, "db_constraint", True)


def list_owned_tables(user_model: type[Model]) -> list[tuple[type[Model], str]]:
    """Return the tables that refer to users, with the name of the column; sessions aside.

    What has its owner beside its session goes with that.
    """
    relations = [
        field
        for field in user_model._meta.get_fields(include_hidden=True)
        if isinstance(field, ForeignObjectRel) and not field.many_to_many
    ]
    tables: list[tuple[type[Model], str]] = [
        (relation.related_model, relation.field.name)
        for relation in relations
        if relation.related_model is not Session and not _goes_with_session(relation)
    ]
    return sorted(tables, key=lambda table: (table[0]._meta.label, table[1]))
