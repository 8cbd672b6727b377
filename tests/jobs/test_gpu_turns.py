"""Turns on a GPU: some beside each other, one alone, in the order in which they were asked for."""

from __future__ import annotations

import asyncio

import pytest

from kernel_lsp.jobs.gpu_turns import GpuTurns


async def test_some_at_once_and_one_alone_which_later_ones_wait_for() -> None:
    turns, order = GpuTurns(2), []

    async def use(name: str, alone: bool = False) -> None:
        async with turns.alone() if alone else turns.one():
            order.append(f"{name} begins")
            await asyncio.sleep(0.05)
            order.append(f"{name} ends")

    await asyncio.gather(use("a"), use("b"), use("model", alone=True), use("c"), use("d"))
    assert order[:2] == ["a begins", "b begins"] and set(order[2:4]) == {"a ends", "b ends"}
    assert order[4:6] == ["model begins", "model ends"]
    assert order[6:8] == ["c begins", "d begins"]


async def test_with_one_turn_no_two_are_at_work_at_once() -> None:
    turns, inside = GpuTurns(), []

    async def use() -> None:
        async with turns.one():
            inside.append(1)
            assert len(inside) == 1
            await asyncio.sleep(0.01)
            inside.pop()

    await asyncio.gather(*(use() for _ in range(5)))


async def test_a_cancelled_one_keeps_no_other_waiting() -> None:
    turns = GpuTurns(2)
    alone_began = asyncio.Event()

    async def alone() -> None:
        async with turns.alone():
            alone_began.set()
            await asyncio.sleep(60)

    async with turns.one():
        waits = asyncio.create_task(alone())
        await asyncio.sleep(0)
        behind = asyncio.create_task(turns.one().__aenter__())
        await asyncio.sleep(0.01)
        assert not behind.done()
        waits.cancel()
        await asyncio.wait_for(behind, 1)
        with pytest.raises(asyncio.CancelledError):
            await waits
    assert not alone_began.is_set()

    # One that is cancelled in the moment in which it gets its turn gives it back.
    turns = GpuTurns()
    first = turns.one()
    await first.__aenter__()
    second = asyncio.create_task(turns.one().__aenter__())
    await asyncio.sleep(0)
    await first.__aexit__(None, None, None)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    async with asyncio.timeout(1), turns.alone():
        pass


async def test_waiting_is_told_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_lsp.jobs.gpu_turns._TELL_SECONDS", 0.05)
    turns, told = GpuTurns(), []
    async with turns.one(told.append):
        assert told == []
        waits = asyncio.create_task(turns.one(told.append).__aenter__())
        await asyncio.sleep(0.3)
        assert 0.1 < sum(told) < 0.35 and not waits.done()
    await waits
