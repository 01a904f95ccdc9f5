"""`make bench-rebuilds`: what the witness takes of each kind, against a rebuild of its history.

Records as those of `make bench-kinds` go through Kafka and ingest into real tables of a lake of its own.
Of each table all of history is rebuilt, then verified, which asks the witness. CPU-seconds are those of the
lake server with its children, and those that the certificate says. A view kind stores nothing: its rebuild
is that of what it reads.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from threading import Event

from rich.console import Console
from rich.table import Table

from benchmarks.meter import Meter
from benchmarks.platform import BenchmarkError, Platform
from benchmarks.subjects import ITEMS, KEYS, STORED, VIEWS
from twinlake.base.errors import near
from twinlake.base.files import replace_file
from twinlake.base.times import format_moment
from twinlake.cli.output import load_settings
from twinlake.config.project import Project
from twinlake.config.settings import Settings
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.certificates import Certificates
from twinlake.lake.catalog.version import stored_versions
from twinlake.topics.produce import produce
from twinlake.topics.records import Draw

MOST = 0.25
"""What the witness may take, as a share of a rebuild."""
LIMIT_S = 1_200.0
TABLES: Mapping[str, Kind] = {table.name: table for table in (*STORED, *VIEWS)}
CONTRACT = """
apiVersion: v3.2.0
kind: DataContract
id: twinlake-made
name: made
version: 1.0.0
status: active
description: {purpose: Made up.}
customProperties:
  - {property: format, value: json}
  - {property: eventTime, value: at}
  - {property: lateAfter, value: 2 days}
  - {property: discardAfter, value: 30 days}
  - {property: futureTolerance, value: 5 minutes}
schema:
  - name: made
    physicalType: topic
    logicalType: object
    properties:
      - {name: key, logicalType: string, physicalType: string, required: true}
      - {name: hot, logicalType: string, physicalType: string, required: true}
      - {name: item, logicalType: string, physicalType: string, required: true}
      - {name: at, logicalType: timestamp, physicalType: timestamp, required: true}
      - {name: amount, logicalType: number, physicalType: "decimal(12,2)", required: true}
      - {name: ratio, logicalType: number, physicalType: double, required: true}
"""
console = Console(highlight=False)


class Made(Platform):
    topic = "made"


@dataclass(frozen=True, kw_only=True)
class Cost:
    """CPU-seconds of all records, once each."""

    rebuild: float
    witness: float

    @property
    def share(self) -> float:
        return self.witness / self.rebuild


class Day:
    """Records of a day, evenly over it; the last is of the moment at which it was made."""

    def __init__(self, count: int) -> None:
        self._step, self._at = timedelta(days=1) / count, datetime.now(UTC) - timedelta(days=1)
        self._random = Random(7)

    def draw(self, count: int, now_ms: int) -> Draw:
        drawn = [self._record() for _ in range(count)]
        return Draw(keys=[key for key, _ in drawn], values=[value for _, value in drawn])

    def _record(self) -> tuple[bytes, bytes]:
        random, key = self._random.random, f"k{self._random.randrange(KEYS)}"
        self._at += self._step
        event = {
            "key": key, "hot": "hot" if random() < 0.3 else key, "item": f"item{int(random() * ITEMS)}",
            "at": format_moment(self._at), "amount": int(random() * 1_000_000) / 100,
            "ratio": int(random() * 1_000_000) / 7,
        }  # fmt: skip
        return key.encode(), json.dumps(event).encode()


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rebuilds", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--only", default="", help="tables to measure, by comma, with what they read")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the services are stopped then too
    tables = _chosen(parser, asked.only)
    folder = load_settings().home / "bench" / "rebuilds"
    project = _project(folder / "project")
    with Made(Settings(home=folder / "home", in_project=project)) as platform:
        found = _measured(platform, tables, asked.records)
    replace_file(folder / "rebuilds.json", json.dumps({n: asdict(c) for n, c in found.items()}, indent=2))
    _show(found, asked.records)
    return int(any(one.share > MOST for one in found.values()))


def _chosen(parser: argparse.ArgumentParser, only: str) -> dict[str, Kind]:
    """The tables of these names with what they read, in the order in which they are built."""
    names = [*filter(None, only.split(","))]
    if unknown := [name for name in names if name not in TABLES]:
        parser.error(f"there is no table {unknown[0]!r}{near(unknown[0], TABLES)}")
    wanted = {one for name in names for one in (name, *TABLES[name].reads)} or TABLES
    return {name: table for name, table in TABLES.items() if name in wanted}


def _project(folder: Path) -> Project:
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "contracts").mkdir(parents=True)
    (folder / "contracts" / f"{Made.topic}.yaml").write_text(CONTRACT)
    (folder / "twinlake.toml").write_text("[project]\n")
    return Project.load(folder)


def _measured(platform: Made, tables: Mapping[str, Kind], count: int) -> dict[str, Cost]:
    platform.release({name: table.to_json() for name, table in tables.items()})
    produce(
        Day(count), login=platform.services.kafka("producer"), topic=platform.topic, count=count, rate=None,
        stop=Event(), report=lambda sent: None,
    )  # fmt: skip
    platform.caught_up(platform.ends(), LIMIT_S)
    console.print(f"{count:,} records are in {len(tables)} tables")
    platform.job("rebuild", {"table": next(iter(tables))})  # the first warms what all need
    found: dict[str, Cost] = {}
    for name, table in tables.items():
        read = [found[one].rebuild for one in table.reads]
        rebuild = sum(read) if read else _rebuild(platform, name)
        found[name] = Cost(rebuild=rebuild, witness=_witness(platform, name))
        console.print(f"{name:24} {found[name].rebuild:7.2f} {found[name].witness:7.2f} CPU-s")
    return found


def _rebuild(platform: Made, table: str) -> float:
    with Meter([platform.process("twinlake.server")]) as meter:
        if not platform.job("rebuild", {"table": table})["equal"]:
            raise BenchmarkError(f"a rebuild of {table} found a difference")
    return meter.cost.cpu_seconds


def _witness(platform: Made, table: str) -> float:
    """What the certificate of all of history says; BenchmarkError where the witness does not agree."""
    platform.job("verify", {"table": table})
    lake = platform.settings.lake
    (version,) = (one for one in stored_versions(lake) if (one.table, one.state) == (table, "living"))
    made = Certificates(lake).newest(table, version.name)
    if made is None or made.witness is None or not made.witness.answer.is_equal:
        raise BenchmarkError(f"{table} is not witnessed: {made and made.witness}")
    return made.witness.answer.cpu_s


def _show(found: Mapping[str, Cost], count: int) -> None:
    shown = Table("table", "rebuild", "witness", "share", title=f"CPU-s per million of {count:,} records")
    for name, one in found.items():
        per = 1_000_000 / count
        judged = f"{one.share:.2f} {'ok' if one.share <= MOST else 'MISSED'}"
        shown.add_row(name, f"{one.rebuild * per:.2f}", f"{one.witness * per:.2f}", judged)
    console.print(shown)


if __name__ == "__main__":
    sys.exit(main())
