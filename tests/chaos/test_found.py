"""What a run must find, planted: each way of looking fails where it is there, and not where it is not."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest

from tests.chaos import invariants, oracle
from tests.chaos.held import LEAST, Looks
from tests.chaos.reader import Reader
from tests.chaos.world import COMPARES, LAKE, SOON_S, SQL, Journal, World
from tests.small_lake.small import unpack
from tests.states import log_history, log_state
from twinlake.base.errors import DifferenceError, TwinlakeError
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.certificates import Certificate

Rows = list[dict[str, Any]]
TAG = 2


def event(offset: int, status: str, amount: int, ordered_at: int) -> dict[str, Any]:
    return {
        "place": (0, offset), "region": "zeeland", "customer": "c1", "order_id": offset, "status": status,
        "amount": amount, "ordered_at": ordered_at,
    }  # fmt: skip


EVENTS = [
    event(0, "pending", 20_000, 1_000_000), event(1, "cancelled", 30_000, 1_020_000),
    event(2, "pending", 12_050, 9_000_000), event(3, "completed", 100, 9_001_000),
]  # fmt: skip
SHOWN: dict[str, Rows] = {
    "totals": [{"region": "zeeland", "tag": TAG, "spent": "621.50", "records": 4, "buyers": 1}],
    "visits": [
        {"customer": "c1", "tag": TAG, "a": 1_000_000, "z": 1_020_000, "spent": "500.00", "records": 2},
        {"customer": "c1", "tag": TAG, "a": 9_000_000, "z": 9_001_000, "spent": "121.50", "records": 2},
    ],
    "asked": [
        {"p": 0, "o": 0, "region": "zeeland", "customer": "c1", "amount": "200.00", "at": 1_000_000},
        {"p": 0, "o": 2, "region": "zeeland", "customer": "c1", "amount": "120.50", "at": 9_000_000},
    ],
    "cancelled": [
        {"p": 0, "o": 1, "region": "zeeland", "customer": "c1", "amount": "300.00", "at": 1_020_000},
    ],
    "near": [
        {"lp": 0, "lo": 0, "rp": 0, "ro": 1, "asked": "200.00", "undone": "300.00"},
        {"lp": 0, "lo": 2, "rp": None, "ro": None, "asked": "120.50", "undone": None},
    ],
    "gap": [{"region": "zeeland", "records": 4, "missing": 0}],
}  # fmt: skip


class Shows:
    """A door that shows what it is given."""

    def __init__(self, **more: Rows) -> None:
        self._tables = SHOWN | more

    def rows(self, sql: str) -> Rows:
        (table,) = re.findall(r"serve\.(\w+)", sql)
        return self._tables[table]


def differing(door: Shows) -> list[str]:
    tables = oracle._tables(EVENTS, door, TAG).items()
    return [name for name, (expected, shown) in tables if [*oracle._difference(name, expected, shown)]]


def test_tables_that_are_right_do_not_differ() -> None:
    assert differing(Shows()) == []


@pytest.mark.parametrize("table", SHOWN)
def test_a_row_that_is_there_twice_is_gone_or_is_another_differs(table: str) -> None:
    first, *others = SHOWN[table]
    amount = next(name for name in ("spent", "amount", "asked", "records") if name in first)
    other = first | {amount: 7 if amount == "records" else "7.00"}

    for rows in ([first, first, *others], others, [other, *others]):
        assert differing(Shows(**{table: rows})) == [table]


@pytest.fixture
def journal() -> Journal:
    return Journal()


def asked(journal: Journal, *rows: tuple[int, str, str, int]) -> Reader:
    """A reader who was shown these: release, tag of totals, tag of visits, records."""
    reader = Reader(sql=cast(Any, None), journal=journal)
    before: dict[str, Any] = {}
    for release, totals, visits, records in rows:
        row = {"release": release, "totals": totals, "visits": visits, "records": records, "orders": records}
        reader._judge(before, row)
        before = row
    return reader


def test_a_reader_finds_a_mixture_and_a_step_back(journal: Journal) -> None:
    asked(journal, (1, "1-1", "1-1", 5), (2, "2-2", "2-2", 5))
    assert journal.wrong == []

    asked(journal, (1, "1-1", "2-2", 5), (1, "1-2", "1-2", 5))
    assert [line.split(":")[0] for line in journal.wrong] == ["a mixture of releases"] * 2
    asked(journal, (2, "1-1", "1-1", 5), (1, "1-1", "1-1", 4))
    assert [line for line in journal.wrong if line.startswith("a step back: r")] == [
        "a step back: release 2 then 1", "a step back: records 5 then 4",
    ]  # fmt: skip


def test_what_a_reader_saw_must_be_of_one_release_and_not_go_back(journal: Journal) -> None:
    seen = asked(journal, (1, "1-1", "1-1", 5), (2, "2-2", "2-2", 6)).seen

    assert [*invariants.broken_for_reader(seen, {1: 1, 2: 2})] == []
    (line,) = invariants.broken_for_reader(seen, {1: 1, 2: 3})
    assert line.startswith("one_release_per_statement: no release 2 has all")
    (line,) = invariants.broken_for_reader(seen[::-1], {1: 1, 2: 2})
    assert line == "no_reader_goes_back: release 2 was seen, now 1"


def test_two_tags_in_one_table_are_no_release(journal: Journal) -> None:
    seen = asked(journal, (2, "1-2", "2-2", 5)).seen

    (line,) = invariants.broken_for_reader(seen, {1: 1, 2: 2})
    assert line == "one_release_per_statement: table totals: one statement saw versions 1, 2"


class Part:
    """A server that answers a job with this error, or has ended."""

    def __init__(self, home: Path, error: TwinlakeError | None = None) -> None:
        self.home, self.running, self._error = home, False, error
        (home / "lake.log").write_text("the last line\n")

    def start(self, seconds: float) -> None:
        raise RuntimeError("no memory")

    def do(self, kind: str, /, key: str, **params: Any) -> dict[str, Any]:
        self.asked = getattr(self, "asked", 0) + 1
        if self._error and self.asked == 1:
            raise self._error
        return {"asked": self.asked}


class NeverStarted:
    _process = None


def of_world(journal: Journal, part: Part) -> World:
    parts: dict[str, Any] = {"server": part, "sql": NeverStarted(), "disk": None}
    return World(**parts, journal=journal, project=part.home)


def test_a_part_that_ends_long_after_anything_reached_it_is_found_and_started_again_later(
    journal: Journal, tmp_path: Path
) -> None:
    world = of_world(journal, Part(tmp_path))
    world.disturbed = {LAKE: journal.now_s - SOON_S + 60, SQL: journal.now_s - 2 * SOON_S}
    world.start_again()
    assert journal.wrong == []

    world.disturbed = {LAKE: journal.now_s - SOON_S - 1, SQL: journal.now_s}
    world.start_again()
    assert journal.wrong == [f"the {LAKE} ended, and nothing had been done to it for 120 s"]


def test_speed_and_batch_that_differ_are_not_asked_again_and_a_gate_is(
    journal: Journal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    differ = DifferenceError("3 keys differ", "", "")

    for kind in COMPARES:
        with pytest.raises(DifferenceError):
            of_world(journal, Part(tmp_path, differ)).do(kind, "key")
    assert of_world(journal, Part(tmp_path, differ)).do("promote", "key") == {"asked": 2}


def test_what_rises_and_what_nobody_looked_at_is_found() -> None:
    looks = Looks(world=cast(Any, None))
    flat = {"memory MB": 1000.0, "threads": 100.0, "open files": 100.0}
    for held in looks.of.values():
        held += [flat] * LEAST
    assert looks.risen() == []

    looks.of["lake"].append(flat | {"threads": 140.0})
    del looks.of["SQL server"][1:]
    assert looks.risen() == [
        "the SQL server was looked at 1 times only",
        "lake: threads rose from 100 to 140",
    ]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(0, tmp_path_factory.mktemp("small"))


def broken(
    lake: Path, *, more: int = 0, bad: int = 0, certificates: tuple[Certificate, ...] = ()
) -> list[str]:
    """Of a lake whose topic has so many committed records more, and whose quarantine shows so many more."""
    log = log_state(lake / "logs" / "orders")
    partitions = [place[1] for place, count in (log.originals or {}).items() for _ in range(count)]
    partitions = partitions[-more:] if more < 0 else [*partitions, *partitions[:more]]
    quarantined = log.records - log.counts["valid"] - log.counts.get("ignored", 0) + bad
    return [*invariants.broken(lake, "orders", partitions, quarantined, [*certificates])]


def test_the_invariants_are_asked_of_what_is_left(lake: Path) -> None:
    def names(**planted: int) -> set[str]:
        return {line.split(":")[0] for line in broken(lake, **planted)}  # type: ignore[arg-type]

    assert names() == set()
    assert names(more=1) == {"nothing_lost"}
    assert names(more=-1) == {"nothing_doubled"}
    assert names(bad=-1) == {"quarantine_in_reach"}


def test_a_step_that_is_missing_is_found_in_a_version_that_is_not_live(lake: Path) -> None:
    live = release_log.releases(lake)[-1].tables["totals"]
    logs = (lake / "tables" / "totals").glob("*/_delta_log")
    (old, *_) = sorted(one for one in logs if one.parent.name != live)
    commits = sorted(old.glob("*.json"))
    newest = [one for one in commits if '\\"kind\\":\\"step\\"' in one.read_text()][-1]
    before = newest.read_text()
    actions = [json.loads(line) for line in before.splitlines()]
    told = json.loads(actions[0]["commitInfo"]["userMetadata"])
    actions[0]["commitInfo"]["userMetadata"] = json.dumps(told | {"step": told["step"] + 1})
    newest.write_text("".join(json.dumps(one) + "\n" for one in actions))

    try:
        assert {line.split(":")[0] for line in broken(lake)} == {"steps_without_gap"}
    finally:
        newest.write_text(before)


def certificate(differing: int) -> Certificate:
    return Certificate(
        id="c", job="j", kind="verify", table="totals", version="v-1", fingerprint="f",
        position={"orders": 3}, delta_version=1, step=1, through_segment=0, windows=[], rows_compared=9,
        differing=differing, equal=not differing,
    )  # fmt: skip


def test_a_certificate_that_is_not_equal_and_a_replay_that_changed_something_are_found(lake: Path) -> None:
    assert broken(lake, certificates=(certificate(0),)) == []
    (line,) = broken(lake, certificates=(certificate(0), certificate(2)))
    assert line == "speed_equals_batch: totals v-1: 2 of 9 keys differ at orders batch 3"

    history = log_history(lake / "logs" / "orders")
    assert [*invariants.replay_changed(history[-1], history[-1])] == []
    assert {line.split(":")[0] for line in invariants.replay_changed(history[0], history[-1])} == {
        "replay_changes_nothing"
    }
