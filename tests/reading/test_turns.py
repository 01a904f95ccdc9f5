"""Who may compute over HTTP, and who has to make room: by a clock of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

import pytest

from twinlake.base.errors import BusyError
from twinlake.reading.__main__ import SLOTS
from twinlake.reading.turns import AT_ONCE, EXPORTS_AT_ONCE, LONG_AT_ONCE, LONG_S, QueryQueue, Turn


class Client:
    """One that waits for ever."""

    async def is_disconnected(self) -> bool:
        return False


CLIENT = cast(Any, Client())


def test_each_turn_has_a_slot_that_nobody_takes_from_it() -> None:
    assert SLOTS == AT_ONCE + LONG_AT_ONCE + EXPORTS_AT_ONCE


def test_a_statement_that_has_become_long_leaves_its_turn_to_others() -> None:
    now = [0.0]

    async def asked() -> list[Turn]:
        turns = QueryQueue(1, 1, clock=lambda: now[0])
        async with turns.one(CLIENT) as first:
            turns.look(first)
            seen = [replace(first)]
            now[0] += LONG_S
            turns.look(first)
            async with turns.one(CLIENT) as second:
                turns.look(second)
                return [*seen, first, second]

    told = [(turn.since, turn.is_long, turn.is_over) for turn in asyncio.run(asked())]
    assert told == [(0, False, False), (0, True, False), (LONG_S, False, False)]


def test_of_further_long_statements_as_many_end_as_others_wait() -> None:
    now = [0.0]

    async def asked() -> tuple[list[bool], list[bool]]:
        turns = QueryQueue(2, 1, clock=lambda: now[0])
        async with turns.one(CLIENT) as first:
            now[0] += LONG_S
            turns.look(first)
            async with turns.one(CLIENT) as second, turns.one(CLIENT) as third:
                running = (first, second, third)
                now[0] += LONG_S
                alone = over(turns, running)
                short = turns.one(CLIENT)
                waiting = asyncio.ensure_future(short.__aenter__())
                await asyncio.sleep(0)
                waited_for = over(turns, running)
            await waiting
            await short.__aexit__(None, None, None)
            return alone, waited_for

    assert asyncio.run(asked()) == ([False] * 3, [False, True, False])


def test_for_who_finds_a_free_turn_nobody_has_to_end() -> None:
    now = [0.0]

    async def asked() -> bool:
        turns = QueryQueue(2, 0, clock=lambda: now[0])
        async with turns.one(CLIENT) as long:
            now[0] += LONG_S
            short = turns.one(CLIENT)
            entering = asyncio.ensure_future(short.__aenter__())
            await asyncio.sleep(0)
            turns.look(long)
            await entering
            await short.__aexit__(None, None, None)
            return long.is_over

    assert not asyncio.run(asked())


def test_in_the_place_of_a_long_statement_that_does_not_end_another_has_to() -> None:
    now = [0.0]

    async def asked() -> list[list[bool]]:
        turns, seen = QueryQueue(2, 0, clock=lambda: now[0]), []
        async with turns.one(CLIENT) as first, turns.one(CLIENT) as second:
            now[0] += LONG_S
            short = turns.one(CLIENT)
            waiting = asyncio.ensure_future(short.__aenter__())
            await asyncio.sleep(0)
            for _ in range(2):
                seen.append(over(turns, (first, second)))
                now[0] += LONG_S
        await waiting
        await short.__aexit__(None, None, None)
        return seen

    assert asyncio.run(asked()) == [[True, False], [True, True]]


def test_a_long_statement_that_has_ended_makes_room_for_another() -> None:
    now = [0.0]

    async def asked() -> list[bool]:
        turns, long = QueryQueue(1, 1, clock=lambda: now[0]), []
        for _ in range(3):
            async with turns.one(CLIENT) as turn:
                now[0] += LONG_S
                turns.look(turn)
                long.append(turn.is_long)
        return long

    assert asyncio.run(asked()) == [True, True, True]


def test_who_leaves_in_the_moment_in_which_a_turn_is_free_does_not_keep_it() -> None:
    async def asked() -> Turn:
        turns = QueryQueue(1, 0)
        first = turns.one(CLIENT)
        await first.__aenter__()

        class Leaving:
            async def is_disconnected(self) -> bool:
                await first.__aexit__(None, None, None)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                return True

        with pytest.raises(BusyError):
            async with turns.one(cast(Any, Leaving())):
                raise AssertionError("nobody is there")
        async with asyncio.timeout(1), turns.one(CLIENT) as turn:
            return turn

    assert not asyncio.run(asked()).is_over


def over(turns: QueryQueue, running: Iterable[Turn]) -> list[bool]:
    for turn in running:
        turns.look(turn)
    return [turn.is_over for turn in running]
