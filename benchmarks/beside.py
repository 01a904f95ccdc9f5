"""`python -m benchmarks.beside`: the stream's freshness alone, and beside a query that holds all cores.

From a record's making until both tables have it, read from their commits; readers have no part in it. The
heavy query is a cross join over HTTP, sent again as soon as its client has gone away.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress

import httpx

from benchmarks import freshness
from benchmarks.alongside import alongside
from benchmarks.orders import steady
from benchmarks.platform import Platform
from tests.project import OURS
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings

HEAVY = "SELECT count(*) FROM range(3000000) a CROSS JOIN range(3000000) b WHERE a.id * b.id % 7 = 3"
CLIENT_S, LEAD_S = 15.0, 5.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description=__doc__)
    parser.add_argument("--rate", type=float, default=300.0, help="records/s")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long each figure is measured")
    asked = parser.parse_args()
    with Platform(Settings(home=load_settings().home / "bench" / "home", in_project=OURS)) as platform:
        measured(platform, "warm-up", asked.rate, asked.seconds)
        alone = measured(platform, "alone", asked.rate, asked.seconds)
        with alongside(lambda: ask_heavily(platform)):
            beside = measured(platform, "beside a heavy query", asked.rate, asked.seconds)
        again = measured(platform, "alone again", asked.rate, asked.seconds)
    share = beside / ((alone + again) / 2)
    print(f"p50 beside a heavy query is {share:.2f} times that without (at most 2)")
    return 0 if share <= 2 else 1


def ask_heavily(platform: Platform) -> None:
    services = platform.services
    with suppress(httpx.TimeoutException):  # what a person does who is tired of waiting
        httpx.post(
            f"{services.sql_url}/query", json={"sql": HEAVY}, headers={"X-Twinlake-Query": "1"},
            auth=services.reader, timeout=CLIENT_S, trust_env=False,
        ).raise_for_status()  # fmt: skip


def measured(platform: Platform, name: str, rate: float, seconds: float) -> float:
    """The median over the records, in seconds; printed with the 99th percentile."""
    fresh = freshness.observe(
        steady(platform, name), platform.visible, platform, rate=rate, seconds=seconds, lead_s=LEAD_S
    )
    print(f"{name}: p50 {fresh.p50_s:.2f} s, p99 {fresh.p99_s:.2f} s", flush=True)
    return fresh.p50_s


if __name__ == "__main__":
    sys.exit(main())
