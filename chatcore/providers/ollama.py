"""Ask Ollama what its list of models leaves out: how much each reads, and what it can do.

Ollama cuts longer requests without a word, so the window has to be known. It is that with which a
model runs (`/api/ps`); else the one that its file sets (`num_ctx`); else the one with which Ollama
runs models whose file sets none, if one of them is loaded.
"""

import asyncio
import re
from typing import Any

from chatcore.providers.base import Connection

LOAD_SECONDS = 15.0
_NUM_CTX = re.compile(r"^num_ctx\s+(\d+)", re.MULTILINE)


def is_ollama(rows: list[Any]) -> bool:
    """Return True if a list of models is that of an Ollama: it names "library" as the owner."""
    return bool(rows) and all(isinstance(row, dict) and _is_of_library(row) for row in rows)


def _is_of_library(row: dict[str, Any]) -> bool:
    return row.get("owned_by") == "library" and isinstance(row.get("id"), str)


async def describe_models(
    client: Any, connection: Connection, rows: list[Any], *, loaded_name: str = ""
) -> list[Any]:
    """Return the rows with the `context_window` and `capabilities` that Ollama reports.

    The model `loaded_name` is loaded first: Ollama reports the window that it really uses only for
    models that are loaded.
    """
    root = re.sub(r"/v1/?\Z", "", connection.base_url)
    if loaded_name in {row["id"] for row in rows}:
        load = client.post(f"{root}/api/generate", body={"model": loaded_name}, cast_to=object)
        await asyncio.wait_for(load, LOAD_SECONDS)
    answer = await client.get(f"{root}/api/ps", cast_to=object)
    running = answer.get("models") or [] if isinstance(answer, dict) else []
    windows = {row.get("name"): row.get("context_length") for row in running}
    questions = (
        client.post(f"{root}/api/show", body={"model": row["id"]}, cast_to=object) for row in rows
    )
    shown = await asyncio.gather(*questions)
    facts = {row["id"]: _read_facts(answer) for row, answer in zip(rows, shown, strict=True)}
    usual = (window for name, window in windows.items() if window and not facts.get(name, (0,))[0])
    usual_window = next(usual, None)
    return [_fill(row, windows.get(row["id"]), usual_window, *facts[row["id"]]) for row in rows]


def _read_facts(answer: Any) -> tuple[int | None, int | None, list[str]]:
    """Return the window that a model's file sets, what it was trained for, and its abilities."""
    if not isinstance(answer, dict):
        return None, None, []
    match = _NUM_CTX.search(str(answer.get("parameters") or ""))
    info = answer.get("model_info") or {}
    trained = next((info[key] for key in info if key.endswith(".context_length")), None)
    return int(match[1]) if match else None, trained, answer.get("capabilities") or []


def _fill(
    row: dict[str, Any],
    running: int | None,
    usual: int | None,
    own: int | None,
    trained: int | None,
    abilities: list[str],
) -> dict[str, Any]:
    window = running or own or (min(usual, trained or usual) if usual else None)
    filled = row | ({"context_window": window} if window else {})
    if abilities:
        names = {"function_calling": "tools", "vision": "vision"}
        filled["capabilities"] = {key: name in abilities for key, name in names.items()}
    return filled
