"""A deadline stops a wait that lasts too long, and only that."""

import asyncio

import pytest

from chatcore.providers.deadline import Deadline


async def test_a_wait_beyond_the_deadline_is_a_time_out() -> None:
    with pytest.raises(TimeoutError), Deadline(0.05):
        await asyncio.sleep(30)
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


async def test_waits_that_are_renewed_may_last_longer_together() -> None:
    deadline = Deadline(1.5)
    for _ in range(8):
        with deadline:
            await asyncio.sleep(0.3)
        deadline.renew()
    deadline.close()


async def test_waits_that_are_not_renewed_share_one_deadline() -> None:
    deadline = Deadline(0.5)

    async def wait_often() -> None:
        for _ in range(100):
            with deadline:
                await asyncio.sleep(0.1)

    with pytest.raises(TimeoutError):
        await wait_often()


async def test_work_between_two_waits_is_never_stopped() -> None:
    deadline = Deadline(0.1)
    with deadline:
        await asyncio.sleep(0)
    await asyncio.sleep(0.5)
    deadline.renew()
    with deadline:
        await asyncio.sleep(0)
    deadline.close()


async def test_a_wait_that_begins_after_the_deadline_is_a_time_out() -> None:
    deadline = Deadline(0.05)
    await asyncio.sleep(0.2)
    with pytest.raises(TimeoutError), deadline:
        await asyncio.sleep(30)


async def test_a_cancellation_stays_a_cancellation() -> None:
    async def wait() -> None:
        with Deadline(30):
            await asyncio.sleep(30)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancellation_that_comes_with_the_deadline_stays_one() -> None:
    started = asyncio.Event()

    async def wait() -> None:
        with Deadline(0.2):
            started.set()
            await asyncio.sleep(30)

    task = asyncio.create_task(wait())
    await started.wait()
    asyncio.get_running_loop().call_later(0.1, task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_an_error_of_the_wait_is_the_error() -> None:
    with pytest.raises(ValueError, match="broken"), Deadline(30):
        raise ValueError("broken")


async def test_a_deadline_inside_another_time_out_leaves_that_one_alone() -> None:
    async with asyncio.timeout(30):
        with pytest.raises(TimeoutError), Deadline(0.05):
            await asyncio.sleep(30)
        await asyncio.sleep(0.01)
