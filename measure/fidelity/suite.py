"""Run the measurements in a database of their own, and print their tables."""

import argparse
import logging
import platform
import shutil
import subprocess
import time
from collections.abc import Callable

from django.conf import settings
from django.core.management import call_command
from django.db import connections

from chatcore.base.runner import turn_runner
from compaction.core.presets import PRESETS
from measure.fidelity import embedded, fault_tables, memory_tables, recall_tables
from measure.fidelity.stand import Stand
from measure.fidelity.tables import DEFAULT, LARGE, Plan, Table
from measure.fidelity.wording import count_wordings
from tests.support.scripted_model import ScriptedModel

TABLES: dict[str, Callable[[Stand, Plan], Table]] = {
    "rules": memory_tables.measure_rules,
    "values": memory_tables.measure_values,
    "survival": memory_tables.measure_survival,
    "recall": recall_tables.measure_recall,
    "evidence": recall_tables.measure_evidence,
    "faults": fault_tables.measure_faults,
    "lasting": memory_tables.measure_lasting,
}


def run(arguments: argparse.Namespace) -> int:
    """Measure what the arguments name, print the tables, and return the exit code."""
    plan = Plan(
        seed=arguments.seed,
        scale=LARGE if arguments.full else DEFAULT,
        lists_misses=arguments.misses,
        policies=arguments.policies.split(",") if arguments.policies else tuple(PRESETS),
    )
    # A summary that is refused is a result here, and stands in the table.
    logging.getLogger("compaction").setLevel(logging.ERROR)
    print(describe_run(plan), flush=True)
    if arguments.only == ["embedded"]:
        print(f"\n{embedded.measure_embedded(plan).format()}", flush=True)
        return 0
    call_command("migrate", verbosity=0)
    call_command("createcachetable", verbosity=0)
    try:
        with ScriptedModel() as scripted:
            stand = Stand(scripted)
            for name in arguments.only or TABLES:
                start = time.perf_counter()
                table = TABLES[name](stand, plan)
                table.remarks.append(f"Took {time.perf_counter() - start:.0f} s.")
                print(f"\n{table.format()}", flush=True)
    finally:
        turn_runner.stop()
        connections.close_all()
        shutil.rmtree(settings.DATA_DIR, ignore_errors=True)
    return 0


def describe_run(plan: Plan) -> str:
    """Return one line: the seed, the commit, the machine, and how many wordings there are."""
    statements, questions = count_wordings()
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return (
        f"Seed {plan.seed}, commit {commit or 'unknown'}, {platform.machine()}, Python "
        f"{platform.python_version()}, {statements} statements and {questions} questions."
    )
