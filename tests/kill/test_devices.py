"""A unit fix of the gallery's devices: built from all of history beside the wrong one and made live, while
they go on; a reader of the changelogs is told nothing but the rows that it mends.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.changelog.reader import Reader, Told, table_of
from tests.kill.server import LakeProcess, lake_process
from tests.oracle.gallery import devices as oracle
from tests.project import EXAMPLES, GALLERY, sequence
from twinlake.kinds.kind import Kind
from twinlake.topics.kafka import Kafka
from twinlake.topics.produce import produce
from twinlake.topics.registry import Registry

A_SECOND = 200
"""Twenty devices, ten readings a second each."""
MENDED = {table.name: table for table in EXAMPLES["devices"]}
WRONG: dict[str, Any] = {
    name: replace(table, columns={**table.columns, "celsius": "CAST(temperature AS decimal(10, 2))"})
    for name, table in MENDED.items()
}


@pytest.fixture
def server(tmp_path: Path, seed: int) -> Iterator[LakeProcess]:
    with lake_process(tmp_path, seed) as made:
        (made.home / "gallery.json").write_text(json.dumps(["devices"]))
        schema = json.loads((GALLERY / "devices" / "schemas" / "readings.v1.avsc").read_text())
        Registry(made.services.registry_url).register("readings-value", schema)
        Kafka(made.broker.login).create("readings")
        yield made.start()


def release(server: LakeProcess, tables: dict[str, Kind]) -> int:
    plan = server.do("plan", definitions={name: table.to_json() for name, table in tables.items()})["id"]
    server.do("build", plan=plan)
    return int(server.do("promote", plan=plan, approved_by="test")["release"])


def expected(server: LakeProcess, table: str, batch: int, *, mended: bool) -> dict[tuple[Any, ...], Any]:
    """What the log's records up to a batch make of the table, as a reader of its changelog holds it."""
    log = DeltaTable(str(server.lake / "logs" / "readings"))
    names = ["batch", "partition", "offset", "verdict", "event"]
    valid = [
        {**one["event"], "partition": one["partition"], "offset": one["offset"]}
        for one in log.to_pyarrow_table(columns=names).to_pylist()
        if one["verdict"] == "valid" and one["batch"] <= batch
    ]
    if not mended:
        valid = [{**one, "unit": "C"} for one in valid]
    keys = MENDED[table].view_keys
    rows = oracle.tables({"readings": valid}, {})[table]
    return {key: {**dict(zip(keys, key, strict=True)), **row} for key, row in rows.items()}


def held(records: Iterable[Told], batch: int, release: int) -> dict[tuple[Any, ...], Any]:
    """What a reader holds who has read up to there."""
    return table_of(one for one in records if (one.position["readings"], one.release) <= (batch, release))


@pytest.mark.faults
def test_a_unit_fix_is_told_as_the_rows_that_it_mends_and_at_every_position_exactly(
    server: LakeProcess,
) -> None:
    release(server, WRONG)
    readers = {}
    for table in MENDED:
        server.do("changelog", table=table, topic=f"{table}_changes")
        readers[table] = Reader(server.broker.login, server.services.registry_url, f"{table}_changes")
    stop = threading.Event()
    source = sequence("devices", "readings", seed=server.seed, run="r", schema_id=2)
    devices = threading.Thread(
        target=produce, args=(source,),
        kwargs={
            "login": server.broker.login, "topic": "readings", "count": None,
            "rate": A_SECOND, "stop": stop, "report": lambda sent: None,
        },
    )  # fmt: skip
    devices.start()

    def told(release: int) -> bool:
        return all(
            one["release"] == release and one["position"].get("readings", 0) > 20
            for one in server.client.status()["changelogs"]
        )

    try:
        server.until(lambda: told(1))
        swapped = release(server, MENDED)
        server.until(lambda: told(swapped))
    finally:
        stop.set()
        devices.join()

    for table, reader in readers.items():
        positions = [(one["pin"]["position"]["readings"], one["release"]) for one in reader.positions()]
        records = reader.records()  # after the positions: more is told while we read
        assert positions == sorted(positions)
        assert {release for _, release in positions} == {1, swapped}
        after = next(place for place in positions if place[1] == swapped)
        before = positions[positions.index(after) - 1]
        for batch, at in (positions[0], before, after, positions[-1]):
            assert held(records, batch, at) == expected(server, table, batch, mended=at == swapped)
        then = held(records, *before)
        swap = [one for one in records if (one.position["readings"], one.release) == after]
        assert swap and all(then.get(one.key) != one.row for one in swap)
