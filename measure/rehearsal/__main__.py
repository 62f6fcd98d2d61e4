"""Rehearse a size: python -m measure.rehearsal [--messages 1000000] [--plans FILE].

Needs an empty PostgreSQL database in CHATCORE_DATABASE_URL, and room: about 4 GB for a million
messages with all their indexes. The product itself makes one conversation, which the database then
copies. For each act the table shows the statements that it reads by, their time and the blocks of
8 KB that they touch, and which big tables they read whole. The exit code is 1 if any is.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "measure.benchmarks.settings")
django.setup()

from django.contrib.auth.models import User  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import connection  # noqa: E402
from django.test.utils import setup_test_environment  # noqa: E402

from chatcore.base.runner import turn_runner  # noqa: E402
from chatcore.models import Session  # noqa: E402
from chatcore.models.statements import fetch_rows  # noqa: E402
from compaction.runs import engine  # noqa: E402
from measure.benchmarks import sample_sessions  # noqa: E402
from measure.rehearsal.copies import TABLES, copy_session  # noqa: E402
from measure.rehearsal.hot_acts import Stage, list_admin_acts, list_hot_acts  # noqa: E402
from measure.rehearsal.plans import Plan, explain_act  # noqa: E402
from measure.rehearsal.talk import TURNS, hold_talk  # noqa: E402
from measure.rehearsal.turn_cost import measure_turns  # noqa: E402
from tests.support.scripted_model import ScriptedModel  # noqa: E402

LONG = 100_000  # messages of the longest session
SESSIONS_OF_OWNER = 1_000  # chats of one person


def main() -> int:
    """Fill the database if it is empty, and print the plans of the hot acts."""
    parser = argparse.ArgumentParser(prog="python -m measure.rehearsal")
    parser.add_argument("--messages", type=int, default=1_000_000, help="how many to generate")
    parser.add_argument("--plans", type=Path, help="a file for the plans themselves")
    options = parser.parse_args()
    if connection.vendor != "postgresql":
        print("Set CHATCORE_DATABASE_URL to an empty PostgreSQL database.", file=sys.stderr)
        return 2
    setup_test_environment()  # Django's client asks as the host `testserver`
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    try:
        stage = _find_stage() or _fill(options.messages)
        acts = {**list_hot_acts(stage), **list_admin_acts(stage)}
        plans = {name: _explain(name, act) for name, act in acts.items()}
    finally:
        turn_runner.stop()
    print(_format_sizes())
    print(_format_table(plans))
    if options.plans:
        options.plans.write_text(_format_plans(plans))
    return int(any(plan.whole_tables for found in plans.values() for plan in found))


def _explain(name: str, act: Callable[[], object]) -> list[Plan]:
    _say(name)
    return explain_act(act)


def _say(words: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {words}", file=sys.stderr)


def _find_stage() -> Stage | None:
    """Return who acts in a database that was filled before."""
    owner = User.objects.filter(username="person0").first()
    long = Session.objects.filter(last_seq__gte=LONG).first()
    if owner is None or long is None:
        return None
    return Stage(
        owner=owner,
        session=Session.objects.filter(owner=owner).exclude(pk=long.pk).latest("updated_at"),
        long=long,
        operator=User.objects.get(username="operator"),
    )


def _fill(messages: int) -> Stage:
    with ScriptedModel() as scripted:
        model = sample_sessions.create_model(scripted.base_url, window=8_000)
        _say("makes a conversation by the product")
        sample, cost = measure_turns(partial(hold_talk, scripted, model), TURNS)
        print(cost)
        engine.compact_now(sample.pk, trigger="manual")
        _say(f"makes a conversation of {LONG:,} messages")
        long = sample_sessions.create_conversation(LONG, model)
    User.objects.create_superuser("operator")
    sample.refresh_from_db()
    copies = messages // sample.message_count
    for step in copy_session(sample.pk, copies, max(1, copies // SESSIONS_OF_OWNER)):
        _say(step)
    Session.objects.filter(pk=long.pk).update(owner=User.objects.get(username="person0"))
    stage = _find_stage()
    assert stage
    return stage


def _format_sizes() -> str:
    sizes = fetch_rows(
        """
        SELECT relname, reltuples::bigint, pg_table_size(oid), pg_indexes_size(oid)
        FROM pg_class WHERE relname = ANY(%s) ORDER BY pg_total_relation_size(oid) DESC
        """,
        [list(TABLES)],
    )
    lines = [
        "| table | rows | MB | MB of indexes | bytes a row, all |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| `{name}` | {rows:,} | {table / 2**20:,.0f} | {indexes / 2**20:,.0f}"
        f" | {(table + indexes) / max(rows, 1):,.0f} |"
        for name, rows, table, indexes in sizes
    ]
    return "\n".join(lines)


def _format_table(plans: Mapping[str, Sequence[Plan]]) -> str:
    lines = [
        "",
        "| act | statements | ms in the database | blocks | slowest by | reads whole |",
        "|---|---:|---:|---:|---|---|",
    ]
    for name, found in plans.items():
        slowest = max(found, key=lambda plan: plan.ms, default=None)
        indexes = ", ".join(f"`{index}`" for index in slowest.indexes[:2]) if slowest else ""
        whole = ", ".join(sorted({table for plan in found for table in plan.whole_tables}))
        lines.append(
            f"| {name} | {len(found)} | {sum(plan.ms for plan in found):,.1f}"
            f" | {sum(plan.blocks for plan in found):,} | {indexes} | {whole} |"
        )
    return "\n".join(lines)


def _format_plans(plans: Mapping[str, Sequence[Plan]]) -> str:
    parts = []
    for name, found in plans.items():
        parts.append(f"## {name}\n")
        parts += [f"{plan.ms:.2f} ms, {plan.blocks:,} blocks\n{plan.lines}\n" for plan in found]
    return "\n".join(parts)


if __name__ == "__main__":
    sys.exit(main())
