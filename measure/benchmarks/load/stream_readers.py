"""Readers of streamed answers: a program that prints what they received.

`python -m measure.benchmarks.load.stream_readers` reads a `Job` as JSON from standard input and
prints a `Result` as JSON.
"""

import asyncio
import dataclasses
import json
import statistics
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import uvloop

from measure.benchmarks.load.raw_client import EventClient, build_request
from measure.benchmarks.load.stamps import TICKS, measure_lateness

COMPLETED = "completed"


@dataclass(frozen=True, kw_only=True)
class Job:
    """What to send: one POST of `content` for each `(path, token)` of `targets`.

    The requests are spread evenly over `spread` seconds. A reader that has no end `patience`
    seconds after its request counts as "no end".
    """

    port: int
    targets: list[tuple[str, str]]
    content: str
    spread: float
    patience: float


@dataclass(kw_only=True)
class Answer:
    """What one reader received; the times are seconds of the monotonic clock.

    `outcome` is COMPLETED, or says how it ended otherwise; `detail` is the text of an error.
    """

    outcome: str = "no end"
    text: str = ""
    retry_after: str | None = None
    detail: str = ""
    first_token: float = 0.0
    end: float = 0.0


@dataclass(kw_only=True)
class Result:
    """What all readers received. Lateness is in milliseconds."""

    start: float
    end: float
    lateness_p50: float
    lateness_p95: float
    lateness_max: float
    answers: list[Answer]


class AnswerReader(EventClient):
    """Reads one answer: events of Chatcore, or chunks of OpenAI's format."""

    def __init__(self, request: bytes, lateness: "array[int]") -> None:
        super().__init__(request)
        self.text = ""
        self.detail = ""
        self.first_token = 0.0
        self._lateness = lateness

    def read_event(self, name: bytes, data: bytes, event_id: bytes) -> None:
        """Read a part of the answer, or its end."""
        if name == b"message.delta":
            delta = json.loads(data)
            assert delta["offset"] == len(self.text), "a delta is lost, or came twice"
            self._read_text(delta["text"])
        elif name in (b"turn.completed", b"turn.failed", b"turn.cancelled"):
            ending = json.loads(data)
            self.detail = ending.get("detail", "")
            is_completed = name == b"turn.completed"
            self.finish(COMPLETED if is_completed else f"{name.decode()} {ending.get('type', '')}")
        elif data == b"[DONE]":
            self.finish(COMPLETED)
        elif not name:
            for choice in json.loads(data)["choices"]:
                self._read_text(choice["delta"].get("content", ""))

    def describe_answer(self) -> Answer:
        """Return what was received until now."""
        return Answer(
            outcome=self.end.result() if self.end.done() else "no end",
            text=self.text,
            retry_after=self.retry_after,
            detail=self.detail or self.refusal,
            first_token=self.first_token,
            end=self.ended_at or time.monotonic(),
        )

    def _read_text(self, text: str) -> None:
        self._lateness.extend(measure_lateness(text))
        if text and not self.text:
            self.first_token = time.monotonic()
        self.text += text


async def read_answers(job: Job) -> Result:
    """Send all requests and wait for their ends."""
    lateness = array("l")
    start = time.monotonic()
    answers = await asyncio.gather(
        *(_read_answer(job, place, lateness) for place in range(len(job.targets)))
    )
    p50, p95, worst = summarize_lateness(lateness)
    return Result(
        start=start,
        end=max(answer.end for answer in answers),
        lateness_p50=p50,
        lateness_p95=p95,
        lateness_max=worst,
        answers=answers,
    )


def summarize_lateness(ticks: Sequence[int]) -> tuple[float, float, float]:
    """Return the median, the 95th percentile and the maximum in milliseconds."""
    if len(ticks) < 2:
        return 0.0, 0.0, 0.0
    percentiles = statistics.quantiles(ticks, n=100)
    values = (percentiles[49], percentiles[94], max(ticks))
    p50, p95, worst = (value * 1_000 / TICKS for value in values)
    return p50, p95, worst


async def _read_answer(job: Job, place: int, lateness: "array[int]") -> Answer:
    path, token = job.targets[place]
    await asyncio.sleep(job.spread * place / len(job.targets))
    body = json.dumps({"content": job.content, "stream": True}).encode()
    request = build_request("POST", path, token, body)
    try:
        _, reader = await asyncio.get_running_loop().create_connection(
            lambda: AnswerReader(request, lateness), "127.0.0.1", job.port
        )
    except OSError as error:
        return Answer(outcome=f"no connection: {error}", end=time.monotonic())
    await asyncio.wait([reader.end], timeout=job.patience)
    return reader.describe_answer()


def read_job() -> Job:
    """Read the job from standard input."""
    values: dict[str, Any] = json.load(sys.stdin)
    return Job(**values)


def print_result(result: Result) -> None:
    """Print the result, also where PYTHONUNBUFFERED is set.

    Python's own output without a buffer leaves out what one write of the system does not take.
    """
    with open(sys.stdout.fileno(), "w", closefd=False) as output:
        json.dump(dataclasses.asdict(result), output)


if __name__ == "__main__":
    print_result(uvloop.run(read_answers(read_job())))
