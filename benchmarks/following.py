"""`make bench-following`: how soon those who follow a table have a record, and what many of them cost.

Everything runs in `<state folder>/bench/following`, beside the user's lake; the figures go to
`following.json` there. Records come one by one, each when all readers have the one before.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from statistics import median
from typing import Any

import httpx
import psutil

from benchmarks.idle import mib
from benchmarks.orders import send, steady
from benchmarks.platform import Platform, command
from records import Sample
from tests.project import OURS
from twinlake.base.files import replace_file
from twinlake.base.waiting import wait_for
from twinlake.cli.output import load_settings
from twinlake.config.settings import Settings
from twinlake.reading.changes.readers import OF_ONE_USER
from twinlake.topics.produce import produce

TABLE = "sales_per_region"
LIMIT_S = 120.0
REST_S = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.following", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument("--before", type=int, default=20_000, help="records in the lake before")
    parser.add_argument("--warm-up", type=int, default=30, help="records that are not measured")
    parser.add_argument("--records", type=int, default=30, help="records that are")
    parser.add_argument("--readers", type=int, default=100, help="how many follow at once, in the end")
    asked = parser.parse_args()
    folder = load_settings().home / "bench" / "following"
    with Platform(Settings(home=folder / "home", in_project=OURS)) as platform:
        send(platform, "before", asked.before)
        platform.caught_up(platform.ends(), limit_s=300)
        result = measured(platform, asked)
    replace_file(folder / "following.json", json.dumps(result, indent=2) + "\n")
    print(json.dumps(result, indent=2))
    return 0


def measured(platform: Platform, asked: argparse.Namespace) -> dict[str, Any]:
    """Seconds until one reader and until the last of many has a record; MiB of the SQL server's processes."""
    sample = steady(platform, "following")
    logins = [platform.services.reader, *_more_logins(platform, (asked.readers - 1) // OF_ONE_USER)]
    with _following(platform, logins[0]) as one:
        _waits(platform, sample, [one], asked.warm_up)
        alone = _waits(platform, sample, [one], asked.records)
    time.sleep(REST_S)
    none_mib = _sql_server_mib(platform)
    with ExitStack() as entered:
        many = [
            entered.enter_context(_following(platform, logins[number // OF_ONE_USER]))
            for number in range(asked.readers)
        ]
        together = _waits(platform, sample, many, asked.records)
        many_mib = _sql_server_mib(platform)
    time.sleep(REST_S)
    return {
        "one_reader": _seconds(alone),
        f"last_of_{asked.readers}": _seconds(together),
        "sql_server_mib": {
            "no_reader": none_mib, f"{asked.readers}_readers": many_mib, "after": _sql_server_mib(platform)
        },
    }  # fmt: skip


class _Reader:
    """`batch` is the last one of the log that it has."""

    def __init__(self) -> None:
        self.batch, self.at, self.failed = -1, 0.0, ""
        self.moved = threading.Condition()

    def reads(self, lines: Iterator[str]) -> None:
        try:
            for line in lines:
                if line.startswith("data: ") and (position := json.loads(line[6:]).get("position")):
                    with self.moved:
                        self.batch, self.at = int(position["orders"]), time.perf_counter()
                        self.moved.notify_all()
        except (httpx.HTTPError, httpx.StreamError) as error:  # at the end it is closed while it waits
            self.failed = str(error)

    def until_after(self, batch: int) -> float:
        """When it had a later batch."""
        with self.moved:
            if not self.moved.wait_for(lambda: self.batch > batch, LIMIT_S):
                raise TimeoutError(f"a reader stays at batch {self.batch}: {self.failed}")
            return self.at


@contextmanager
def _following(platform: Platform, login: tuple[str, str]) -> Iterator[_Reader]:
    url, reader = f"{platform.services.sql_url}/tables/{TABLE}/changes", _Reader()
    with (
        httpx.Client(auth=login, trust_env=False, timeout=LIMIT_S) as client,
        client.stream("GET", url, params={"from": "now"}) as answer,
    ):
        answer.raise_for_status()
        thread = threading.Thread(target=reader.reads, args=(answer.iter_lines(),), daemon=True)
        thread.start()
        try:
            reader.until_after(-1)
            yield reader
        finally:  # a close alone would wait for what the thread reads
            with suppress(OSError):
                answer.extensions["network_stream"].get_extra_info("socket").shutdown(socket.SHUT_RDWR)
            thread.join(10)


def _waits(platform: Platform, sample: Sample, readers: list[_Reader], records: int) -> list[float]:
    """Of each record the seconds from its acknowledgement until the last of the readers has it."""
    draw, waits = random.Random(13), []
    for _ in range(records):
        time.sleep(draw.uniform(0.5, 2.0))  # at no fixed place between two looks
        before = readers[0].batch
        produce(
            sample, login=platform.services.kafka("producer"), topic=platform.topic, count=1, rate=None,
            stop=threading.Event(), report=lambda sent: None,
        )  # fmt: skip
        acknowledged = time.perf_counter()
        waits.append(max(one.until_after(before) for one in readers) - acknowledged)
    return waits


def _more_logins(platform: Platform, count: int) -> list[tuple[str, str]]:
    made = []
    for number in range(count):
        name = f"reader{number}"
        done = subprocess.run(
            **command(platform.settings, "users", "add", name), stdout=subprocess.PIPE, text=True, check=True
        )
        made.append((name, done.stdout.split()[-1]))
    for login in made:
        wait_for(f"the login {login[0]}", lambda login=login: _is_let_in(platform, login), 60)
    return made


def _is_let_in(platform: Platform, login: tuple[str, str]) -> bool | None:
    answer = httpx.get(f"{platform.services.sql_url}/names", auth=login, trust_env=False, timeout=60)
    return answer.is_success or None


def _sql_server_mib(platform: Platform) -> dict[str, int]:
    """Of the server, and of the JVM below it; of what they share with others each has its part."""
    root = psutil.Process(platform.process("twinlake.reading"))
    return {"server": round(mib([root])), "jvm": round(mib(root.children(recursive=True)))}


def _seconds(waits: list[float]) -> dict[str, float]:
    return {
        "median_s": round(median(waits), 2), "worst_s": round(max(waits), 2), "records": len(waits),
    }  # fmt: skip


if __name__ == "__main__":
    raise SystemExit(main())
