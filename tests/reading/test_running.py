"""Running statements: who sees which, and which of them ends with whose words. The JVM's part is given."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest

from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.base.times import parse_moment
from twinlake.config.users import User
from twinlake.lake.catalog.audit_log import Act
from twinlake.reading.running import LONGEST_SQL, RunningStatements

NOON = parse_moment("2026-01-31T12:00:00Z")
ANNA, BEN = (User(name=name, role="analyst", line="") for name in ("anna", "ben"))
OLGA = User(name="olga", role="operator", line="")
JDBC = "0123abcd-4567-89ef-0123-456789abcdef"
SHORT = "0123abcd4567"


class Java:
    """What Spark knows: one over JDBC, and what tasks hold."""

    def __init__(self) -> None:
        self.memory: dict[str, int] = {JDBC: 7 << 20}
        self.ended: list[tuple[str, ...]] = []
        since = NOON.timestamp() * 1_000
        self.running = [{"id": JDBC, "user": "ben", "sql": "SELECT 1", "started_ms": since}]

    def overJdbc(self) -> str:
        return json.dumps(self.running)

    def held(self) -> str:
        return json.dumps(self.memory)

    def end(self, *words: str) -> bool:
        self.ended.append(words)
        return bool(self.running)


class World:
    """A clock, a JVM, an audit log, and what is said of statements by them."""

    def __init__(self) -> None:
        self.java, self.acts, self.now = Java(), list[Act](), 0.0
        self.statements = RunningStatements(
            self.java, lambda: self.acts, lambda: NOON + timedelta(seconds=self.now), lambda: self.now
        )

    def writes_down(self, id: str, **more: Any) -> None:
        self.acts.insert(0, Act(at="", act="cancel", who="olga", via="cli", job=id, **more))


@pytest.fixture
def world() -> World:
    return World()


def test_each_has_user_age_state_and_memory_and_who_acts_sees_all(world: World) -> None:
    one = world.statements.one
    with one("anna", "SELECT 2") as waiting, one("anna", "x" * 9_000) as long:
        long.has_begun = True
        world.now = 90.04
        world.java.memory |= {f"spark-session-1,{long.tag}": 4, f"{long.tag},other": 5, "query-else": 99}
        seen = world.statements.listed(OLGA)
        assert [one["user"] for one in world.statements.listed(ANNA)] == ["anna", "anna"]
        assert [one["id"] for one in world.statements.listed(BEN)] == [SHORT]

    named = {one["id"]: one for one in seen}
    assert named[SHORT] == {
        "id": SHORT, "user": "ben", "endpoint": "jdbc", "state": "running", "sql": "SELECT 1",
        "started_at": "2026-01-31T12:00:00Z", "seconds": 90.0, "memory_bytes": 7 << 20,
    }  # fmt: skip
    assert named[waiting.id] == {
        "id": waiting.id, "user": "anna", "endpoint": "http", "state": "waiting", "sql": "SELECT 2",
        "started_at": "2026-01-31T12:00:00Z", "seconds": 90.0, "memory_bytes": 0,
    }  # fmt: skip
    assert (named[long.id]["state"], named[long.id]["memory_bytes"]) == ("running", 9)
    assert len(named[long.id]["sql"]) == LONGEST_SQL + 1
    assert [one["id"] for one in world.statements.listed(OLGA)] == [SHORT], "those over HTTP have ended"


def test_of_a_statement_that_is_not_theirs_an_analyst_learns_nothing(world: World) -> None:
    with pytest.raises(NotFoundError, match=SHORT):
        world.statements.end(SHORT, ANNA)

    assert world.java.ended == []


def test_an_operator_ends_nothing_of_others_that_is_not_in_the_audit_log(world: World) -> None:
    world.writes_down("ffff")
    with pytest.raises(UsageError, match="was not cancelled") as refused:
        world.statements.end(SHORT, OLGA)

    assert "twinlake queries cancel" in refused.value.remedy and world.java.ended == []


def test_its_client_is_told_who_has_cancelled_it_and_why(world: World) -> None:
    world.writes_down(SHORT, why="the lake is needed")

    assert world.statements.end(SHORT, OLGA)["user"] == "ben"

    why = "olga has cancelled it: the lake is needed"
    assert world.java.ended == [(JDBC, "the query was stopped", why, "talk to olga, or ask for less")]


def test_one_that_has_ended_meanwhile_is_not_there(world: World) -> None:
    world.writes_down(SHORT)
    world.java.end = lambda *words: False  # type: ignore[method-assign]

    with pytest.raises(NotFoundError):
        world.statements.end(SHORT, OLGA)


def test_ones_own_is_ended_without_an_entry_and_whatever_fails_in_it_says_that(world: World) -> None:
    with pytest.raises(BusyError, match="the query was stopped") as told, ExitStack() as running:
        one = running.enter_context(world.statements.one("anna", "SELECT 2"))
        world.statements.end(one.id, ANNA)
        assert one.left.is_set() and world.statements.listed(ANNA)[0]["state"] == "ending"
        raise ValueError("interrupted")

    assert "anna has cancelled it" in told.value.why
    assert world.statements.listed(ANNA) == []


def test_an_error_of_one_that_nobody_has_ended_is_its_own(world: World) -> None:
    with pytest.raises(ValueError, match="its own"), world.statements.one("anna", "SELECT 2"):
        raise ValueError("its own")
