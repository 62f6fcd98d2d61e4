"""Tables with as many rows as PostgreSQL needs to choose its plans as for millions."""

from typing import Any

from django.db import connection
from django.db.models import Model
from django.db.models.fields import NOT_PROVIDED
from django.utils import timezone

# The number of a row as an id, so that other rows can refer to it.
UUID_OF = "md5(({})::text)::uuid"


def fill_table(model: type[Model], count: int, /, **expressions: str) -> None:
    """Insert `count` rows; `n`, from 1 on, is the number of a row in the expressions of columns.

    Other columns have their defaults. No trigger runs, so nothing is checked or indexed by one.
    """
    columns, values = [], []
    for field in model._meta.concrete_fields:
        if field.attname in expressions:
            values.append(expressions[field.attname])
        elif field.primary_key:
            if field.get_internal_type() != "UUIDField":
                continue
            values.append(UUID_OF.format("n"))
        else:
            values.append(_quote_default(field))
        columns.append(connection.ops.quote_name(str(field.column)))
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        cursor.execute(
            f"INSERT INTO {model._meta.db_table} ({', '.join(columns)})"
            f" SELECT {', '.join(values)} FROM generate_series(1, {count}) AS n"
        )
        cursor.execute("SET session_replication_role = DEFAULT")
        cursor.execute(f"ANALYZE {model._meta.db_table}")


def _quote_default(field: Any) -> str:
    kind = field.get_internal_type()
    if field.null:
        return "NULL"
    if kind == "DateTimeField":
        return f"'{timezone.now().isoformat()}'::timestamptz - n * interval '5 minutes'"
    if kind == "JSONField":
        return "'[]'" if field.default is list else "'{}'"
    if kind == "UUIDField":
        return UUID_OF.format("n")
    if field.default is not NOT_PROVIDED:
        default = field.get_default()
        return f"'{default}'"
    return "''" if kind in ("CharField", "TextField", "SlugField") else "0"
