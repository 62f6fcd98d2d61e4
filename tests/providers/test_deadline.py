"""A deadline stops a wait that lasts too long, and only that."""

import asyncio

import pytest

from chatcore.providers.client import Deadline
from tests.support.jumping_clock import jumping, pass_seconds


@jumping
async def test_a_wait_beyond_the_deadline_is_a_time_out() -> None:
    with pytest.raises(TimeoutError), Deadline(0.05):
        await pass_seconds(30)
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


@jumping
async def test_waits_that_are_renewed_may_last_longer_together() -> None:
    deadline = Deadline(1.5)
    for _ in range(8):
        with deadline:
            await pass_seconds(1)
        deadline.renew()
    deadline.close()


@jumping
async def test_waits_that_are_not_renewed_share_one_deadline() -> None:
    deadline = Deadline(0.55)
    for _ in range(5):
        with deadline:
            await pass_seconds(0.1)
    with pytest.raises(TimeoutError), deadline:
        await pass_seconds(0.1)


@jumping
async def test_work_between_two_waits_is_never_stopped() -> None:
    deadline = Deadline(0.1)
    with deadline:
        await pass_seconds(0)
    await pass_seconds(0.5)
    deadline.renew()
    with deadline:
        await pass_seconds(0)
    deadline.close()


@jumping
async def test_a_wait_that_begins_after_the_deadline_is_a_time_out() -> None:
    deadline = Deadline(0.05)
    await pass_seconds(0.2)
    with pytest.raises(TimeoutError), deadline:
        await pass_seconds(30)


@jumping
async def test_a_cancellation_stays_a_cancellation() -> None:
    async def wait() -> None:
        with Deadline(30):
            await pass_seconds(30)

    task = asyncio.create_task(wait())
    await pass_seconds(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.3])
def test_a_cancellation_that_comes_with_the_deadline_stays_one(seconds: float) -> None:
    @jumping
    async def cancel() -> None:
        async def wait() -> None:
            with Deadline(0.2):
                await pass_seconds(30)

        task = asyncio.create_task(wait())
        asyncio.get_running_loop().call_later(seconds, task.cancel)
        await asyncio.wait([task])
        assert task.cancelled() or seconds > 0.2

    cancel()


@jumping
async def test_an_error_of_the_wait_is_the_error() -> None:
    with pytest.raises(ValueError, match="broken"), Deadline(30):
        raise ValueError("broken")


@jumping
async def test_a_deadline_inside_another_time_out_leaves_that_one_alone() -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError), Deadline(0.05):
            await pass_seconds(60)
        await pass_seconds(0.01)
