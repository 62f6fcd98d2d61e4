"""What a statement costs in PostgreSQL: its plan, its time and the blocks that it touches."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext

BIG_ROWS = 10_000  # a table of fewer rows may be read whole
READS = ("SELECT", "WITH")
BLOCK_BYTES = 8_192


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One statement's plan. `whole_tables` are big ones that it reads from end to end."""

    statement: str
    lines: str
    ms: float
    blocks: int
    indexes: tuple[str, ...]
    whole_tables: tuple[str, ...]


def explain_act(act: Callable[[], object]) -> list[Plan]:
    """Run an act of the product twice, and return the plan of each statement that it reads by.

    The first run warms the caches, so the time is that of a database that is in use.
    """
    act()
    with CaptureQueriesContext(connection) as captured:
        act()
    statements = [query["sql"] for query in captured.captured_queries]
    return [_explain(sql) for sql in statements if sql.lstrip().upper().startswith(READS)]


def _explain(statement: str) -> Plan:
    options = "ANALYZE, BUFFERS, FORMAT JSON"
    with connection.cursor() as cursor:
        # The parameters are in the statement already; None keeps its percent signs.
        cursor.execute(f"EXPLAIN ({options}) {statement}", None)
        (row,) = cursor.fetchall()
    explained = (row[0] if isinstance(row[0], list) else json.loads(row[0]))[0]
    nodes = list(_walk(explained["Plan"]))
    return Plan(
        statement=statement,
        lines="\n".join(_describe_node(node, depth) for node, depth in nodes),
        ms=explained["Execution Time"],
        blocks=explained["Plan"]["Shared Hit Blocks"] + explained["Plan"]["Shared Read Blocks"],
        indexes=tuple(
            dict.fromkeys(node["Index Name"] for node, _ in nodes if "Index Name" in node)
        ),
        whole_tables=tuple(
            node["Relation Name"]
            for node, _ in nodes
            if node["Node Type"] == "Seq Scan" and _count_read_rows(node) > BIG_ROWS
        ),
    )


def _walk(node: dict[str, Any], depth: int = 0) -> Iterator[tuple[dict[str, Any], int]]:
    yield node, depth
    for child in node.get("Plans", ()):
        yield from _walk(child, depth + 1)


def _count_read_rows(node: dict[str, Any]) -> int:
    rows: int = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
    return rows


def _describe_node(node: dict[str, Any], depth: int) -> str:
    name = node.get("Index Name") or node.get("Relation Name") or ""
    removed = node.get("Rows Removed by Filter", 0)
    rows = f"{node['Actual Rows']:,} rows × {node['Actual Loops']:,}"
    filtered = f", {removed:,} thrown away" if removed else ""
    return f"{'  ' * depth}{node['Node Type']} {name} ({rows}{filtered})".replace("  (", " (")
