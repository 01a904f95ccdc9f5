"""`make bench-look-ups`: how long a look-up by key takes while the stream runs, beside the same by SQL.

Everything runs in `<state folder>/bench/look_ups`, beside the user's lake; the figures go to `look_ups.json`
there. Keys and statements take turns in one run, so that both meet the same load.
"""

from __future__ import annotations

import argparse
import json
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from benchmarks.orders import send, steady
from benchmarks.platform import Platform
from tests.project import OURS
from twinlake.base.files import replace_file
from twinlake.base.waiting import wait_for
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.reading import wire
from twinlake.topics.produce import produce

SQL_EVERY = 8
"""So many look-ups for each statement."""
TARGET_P50_MS = 20.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.look_ups", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--records", type=int, default=200_000, help="in the lake before it is measured")
    parser.add_argument("--rate", type=float, default=500.0, help="records/s meanwhile")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long it is measured")
    parser.add_argument("--warm-up", type=float, default=60.0, help="seconds of the same before")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "look_ups"
    with Platform(Settings(home=folder / "home", in_project=OURS)) as platform:
        send(platform, "before", asked.records)
        platform.caught_up(platform.ends(), limit_s=300)
        result = measured(platform, asked)
    shown(result, folder)
    return 0


def measured(platform: Platform, asked: argparse.Namespace) -> dict[str, Any]:
    """By what was asked, how long it took, in milliseconds."""
    stop = threading.Event()
    sender = threading.Thread(
        target=lambda: produce(
            steady(platform, "look-ups"), login=platform.services.kafka("producer"), topic=platform.topic,
            count=int(asked.rate * (asked.warm_up + asked.seconds + 120)), rate=asked.rate, stop=stop,
            report=lambda sent: None,
        ),
        daemon=True,
    )  # fmt: skip
    sender.start()
    try:
        with Client(platform) as client:
            customers = client.values("SELECT DISTINCT customer AS v FROM serve.latest_order LIMIT 500")
            regions = client.values("SELECT DISTINCT region AS v FROM serve.sales_per_region LIMIT 20")
            work = kinds_of_work(client, customers, regions)
            once(work, asked.warm_up)
            took = once(work, asked.seconds)
    finally:
        stop.set()
        sender.join()
    figures = {name: figure(each) for name, each in took.items()}
    for table in ("latest_order", "sales_per_region"):
        sql, look_up = figures[f"{table} by SQL"], figures[f"{table} by key"]
        look_up["of_sql"] = round(look_up["p50_ms"] / sql["p50_ms"], 3)
    return {"rate": asked.rate, "records": asked.records, "target_p50_ms": TARGET_P50_MS, **figures}


class Client:
    """One connection of a service, as it is kept open."""

    def __init__(self, platform: Platform) -> None:
        services = platform.services
        self._http = httpx.Client(
            base_url=services.sql_url, auth=services.reader, trust_env=False, timeout=60,
            headers={wire.HEADER: "1"},
        )  # fmt: skip

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *raised: object) -> None:
        self._http.close()

    def look_up(self, table: str, *key: str) -> list[dict[str, Any]]:
        return self._rows(self._http.get(f"/tables/{table}/rows", params={"key": [*key]}))

    def query(self, sql: str) -> list[dict[str, Any]]:
        return self._rows(self._http.post("/query", json={"sql": sql}))

    def values(self, sql: str) -> list[str]:
        return wait_for("rows", lambda: [str(row["v"]) for row in self.query(sql) if row["v"]] or None, 60)

    @staticmethod
    def _rows(answer: httpx.Response) -> list[dict[str, Any]]:
        answer.raise_for_status()
        found: list[dict[str, Any]] = answer.json()["rows"]
        return found


def kinds_of_work(
    client: Client, customers: list[str], regions: list[str]
) -> dict[str, Callable[[], object]]:
    """What is asked, by name: look-ups of values that are there, and the same by SQL."""
    draw = random.Random(13)

    def latest() -> object:
        return client.look_up("latest_order", f"customer={draw.choice(customers)}")

    def latest_by_sql() -> object:
        return client.query(f"SELECT * FROM serve.latest_order WHERE customer <=> '{draw.choice(customers)}'")

    def minute() -> str:
        return time.strftime("%Y-%m-%dT%H:%M:00Z", time.gmtime())

    def sales() -> object:
        return client.look_up(
            "sales_per_region", f"region={draw.choice(regions)}", f"window_start={minute()}"
        )

    def sales_by_sql() -> object:
        return client.query(
            f"SELECT * FROM serve.sales_per_region WHERE region <=> '{draw.choice(regions)}' "
            f"AND window_start <=> TIMESTAMP '{minute()}'"
        )

    return {
        "latest_order by key": latest, "sales_per_region by key": sales,
        "latest_order by SQL": latest_by_sql, "sales_per_region by SQL": sales_by_sql,
    }  # fmt: skip


def once(work: dict[str, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    """Each in turn for so long, statements more rarely."""
    took: dict[str, list[float]] = {name: [] for name in work}
    until, turn = time.perf_counter() + seconds, 0
    while time.perf_counter() < until:
        for name, one in work.items():
            if name.endswith("SQL") and turn % SQL_EVERY:
                continue
            began = time.perf_counter()
            one()
            took[name].append((time.perf_counter() - began) * 1_000)
        time.sleep(0.02)
        turn += 1
    return took


def figure(took: list[float]) -> dict[str, float]:
    p50, p95, p99 = np.percentile(took, [50, 95, 99])
    return {
        "p50_ms": round(float(p50), 1), "p95_ms": round(float(p95), 1), "p99_ms": round(float(p99), 1),
        "asked": len(took),
    }  # fmt: skip


def shown(result: dict[str, Any], folder: Path) -> None:
    for name, one in result.items():
        if isinstance(one, dict):
            print(
                f"{name:<24} p50 {one['p50_ms']:6.1f} ms, p99 {one['p99_ms']:7.1f} ms, {one['asked']:,} asked"
            )
    replace_file(folder / "look_ups.json", json.dumps(result, indent=2) + "\n")
    print(f"written to {folder / 'look_ups.json'}")


if __name__ == "__main__":
    raise SystemExit(main())
