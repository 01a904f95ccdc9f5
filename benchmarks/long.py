"""`make bench-long`: a cycle at the 50,000th step against one near the beginning, and rebuilds of 20,000,000
records, one of them into 5,000,000 keys. The steps between are prepared: commits without rows, as the lake
server makes them, one by one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import many, small
from benchmarks.meter import Meter
from benchmarks.orders import send
from benchmarks.platform import BenchmarkError, Platform
from benchmarks.small import Cycle
from jobs.tables.latest_order import TABLE as LATEST
from tests.project import project_in
from twinlake.base.files import replace_file
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.lake.delta import delta
from twinlake.lake.delta.appender import Appender
from twinlake.reading.client import ask

KEYS = 500_000
"""Of each piece; ids of orders begin again with each, the beginning of an event's id is the piece's own."""
KEYED = replace(
    LATEST, name="latest_of_many",
    columns={**LATEST.columns, "customer": f"concat(substr(event_id, 1, 8), '-', order_id % {KEYS})"},
)  # fmt: skip
REBUILT = {"sales_per_region": "rebuild", "latest_order": "rebuild_latest"}
TARGETS = {
    "cycle_growth_50000": 1.5, "rebuild_records_per_s": 1_000_000, "rebuild_latest_records_per_s": 1_000_000,
}  # fmt: skip
PIECE = 2_000_000
"""So many records are sent before it is waited for the tables: the broker's disk is not the measure."""


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.long", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=20_000_000, help="in the log when it is rebuilt")
    parser.add_argument("--steps", type=int, default=50_000, help="at which the cycle is measured again")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each cycle is measured")
    asked = parser.parse_args()
    folder = load_settings().home / "bench"
    began = time.monotonic()
    result: dict[str, Any] = {}

    def note(name: str, value: float) -> None:
        result[name] = value
        print(f"{time.monotonic() - began:7.1f} s  {name}: {value:,}", flush=True)

    project = many.project_with_contracts(folder / "project", {KEYED.name: LATEST.name})
    with Platform(Settings(home=folder / "home", in_project=project_in(project))) as platform:
        early = warm_cycle(platform, asked.seconds)
        note("cycle_s", round(early.seconds, 3))
        platform.stop()
        for path in stepped(platform):
            further_steps(path, platform.topic, asked.steps)
        platform.start()
        late = warm_cycle(platform, asked.seconds)
        note("cycle_50000_s", round(late.seconds, 3))
        note("steps", late.first_step)
        note("cycle_growth_50000", round(late.seconds / early.seconds, 2))
        equal = rebuilds(platform, asked.records, note)
    replace_file(folder / "long.json", json.dumps({**result, "targets": TARGETS}, indent=2) + "\n")
    print(f"written to {folder / 'long.json'}; rebuilds {'equal' if equal else 'DIFFERENT'}")
    return 0 if equal else 1


def warm_cycle(platform: Platform, seconds: float) -> Cycle:
    """A cycle after as many seconds of the same, since each follows a start."""
    small.cycle(platform, seconds)
    return small.cycle(platform, seconds)


def stepped(platform: Platform) -> list[Path]:
    """The tables that take a commit in every cycle: the log, and what the versions store."""
    return [platform.log, *platform.stored()]


def further_steps(path: Path, topic: str, count: int) -> None:
    """`count` commits without rows, each one batch of the log further; the lake server must not run.

    BenchmarkError where the table has no step yet.
    """
    newest = delta.newest_commit(path, lambda metadata: metadata.get("kind") in ("batch", "step"))
    if newest is None:
        raise BenchmarkError(f"{path} has no step to go on from")
    appender, metadata = Appender(path, []), newest.metadata
    [app_id] = newest.transactions
    number = appender.transaction(app_id)
    for step in range(1, count + 1):
        if metadata["kind"] == "batch":
            further = {"batch": metadata["batch"] + step}
        else:
            further = {"step": number + step, "position": {topic: metadata["position"][topic] + step}}
        appender.commit([], app_id, number + step, {**metadata, **further})


def rebuilds(platform: Platform, records: int, note: Callable[[str, float], None]) -> bool:
    """Fill the log, then rebuild both tables, and one with millions of keys; whether all were equal."""
    while (missing := records - sum(platform.ends().values())) > 0:
        send(platform, "long", min(missing, PIECE))
        platform.caught_up(platform.ends(), limit_s=300)
    note("records", sum(platform.ends().values()))
    equal = [_rebuild(platform, table, name, note) for table, name in REBUILT.items()]
    began = time.monotonic()
    platform.release(many.OWN | {KEYED.name: KEYED.to_json()})
    note("release_of_many_keys_s", round(time.monotonic() - began, 1))
    keys = ask(platform.services, f"SELECT count(*) AS n FROM serve.{KEYED.name}")["rows"][0]["n"]
    note("many_keys", int(keys))
    return all([*equal, _rebuild(platform, KEYED.name, "rebuild_of_many_keys", note)])


def _rebuild(platform: Platform, table: str, name: str, note: Callable[[str, float], None]) -> bool:
    with Meter([platform.process("twinlake.server")]) as meter:
        equal = bool(platform.job("rebuild", {"table": table})["equal"])
    note(f"{name}_records_per_s", round(sum(platform.ends().values()) / meter.cost.seconds))
    note(f"{name}_memory_gb", round(meter.cost.peak_bytes / 1e9, 2))
    return equal


if __name__ == "__main__":
    sys.exit(main())
