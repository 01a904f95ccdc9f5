"""The steps of the demo, in order; each says what it does, does it, and keeps its figures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from tests.demo.airflow_api import AirflowApi
from tests.demo.crash import kill, wait_back
from tests.demo.lake_view import LakeView
from tests.demo.producer import Producer, twinlake
from tests.demo.reader import Range, Reader, expected, served
from tests.demo.summary import DemoError, Summary
from tests.oracle.topic import end_offsets
from tests.project import TABLES
from twinlake.config.settings import Services, Settings

TOPIC = "orders"
CHANGED = "sales_per_region"
FIRST = 1_000_000
STEADY_PER_SECOND = 500
SPAN_MS = 2 * 3_600_000
SETTLED_MARGIN_MS = 3 * 60_000
OLD, NEW = "old", "new"


@dataclass(kw_only=True)
class Story:
    """One demo; `steady` runs from the second step until `close`."""

    settings: Settings
    summary: Summary
    steady: Producer | None = None
    reader: Reader | None = None
    windows: Range = field(default_factory=lambda: Range(start_ms=0, end_ms=0))
    sent: int = 0

    @property
    def services(self) -> Services:
        return self.settings.services()

    @property
    def lake(self) -> LakeView:
        return LakeView(self.settings)

    def airflow(self) -> AirflowApi:
        now = self.services
        return AirflowApi(now.airflow_url, now.airflow_user, now.airflow_password)

    def tell(self) -> None:
        """All steps. What must hold is checked on the way; what makes going on senseless raises DemoError."""
        self.start_fresh()
        self.first_million()
        self.certify()
        self.begin_reading()
        self.release("A change is planned, built, compared, gated, approved and promoted", NEW)
        self.roll_back()
        self.release("The change is promoted again, by its name", NEW, [CHANGED])
        self.crash("lake", "The lake server is killed (kill -9)")
        self.crash("broker", "The broker is killed (kill -9)")
        self.stop_reading()
        self.ask_oracle()

    def start_fresh(self) -> None:
        with self.summary.step("A fresh lake and topic: every part starts") as figures:
            _run("reset", "--yes")
            began = time.monotonic()
            for line in _lines("up"):
                self.summary.say(f"[dim]{line.replace('[', chr(92) + '[')}[/]")
            figures["up_seconds"] = round(time.monotonic() - began, 1)
            # On the empty lake it is soon over; with a million records under way it would be the rebuild that
            # a later step shows, twice.
            self.airflow().first_run_over("batch")

    def first_million(self) -> None:
        title = f"A first {FIRST:,} records with faults, then {STEADY_PER_SECOND} a second go on; tables fill"
        with self.summary.step(title) as figures:
            began, wall_ms = time.monotonic(), time.time_ns() // 1_000_000
            arguments = ["--count", str(FIRST), "--seed", "1", "--faults", "--span", "2h"]
            made = Producer(arguments, self.summary.file.parent, "first").wait()
            self.sent += made["acknowledged"]
            figures["produced_per_second"] = round(made["records_per_second"])
            ends = self._ends()
            steady = ["--rate", str(STEADY_PER_SECOND), "--seed", "2", "--faults"]
            self.steady = Producer(steady, self.summary.file.parent, "steady")
            self.lake.caught_up(TOPIC, ends)
            seconds = time.monotonic() - began
            figures["in_all_tables_after_seconds"] = round(seconds, 1)
            figures["records_per_second_from_cold"] = round(FIRST / seconds)
            figures["verdicts"] = self._topic()["counts"]
            first_ms = time.time_ns() // 1_000_000 - SPAN_MS
            self.windows = Range.of_minutes(first_ms + SETTLED_MARGIN_MS, wall_ms - SETTLED_MARGIN_MS)

    def certify(self) -> None:
        with self.summary.step("DAG `batch` rebuilds and certifies every table beside the stream") as figures:
            airflow = self.airflow()
            run = airflow.trigger("batch")
            airflow.wait("batch", run, self._seen)
            figures["run"] = run
            told = self.lake.status()
            equal = {one["table"]: one["rows_compared"] for one in told["certificates"] if one["equal"]}
            self.summary.check(
                "speed and batch of every table are certified equal",
                set(equal) == {table["name"] for table in told["tables"]},
                ", ".join(f"{table}: {rows:,} rows" for table, rows in equal.items()),
            )
            proofs = {one["table"]: one["proof"] for one in told["certificates"]}
            self.summary.check(
                "another engine finds the same rows of every table",
                all(proof.startswith("speed = batch = DuckDB") for proof in proofs.values()),
                "; ".join(f"{table}: {proof}" for table, proof in proofs.items()),
            )

    def begin_reading(self) -> None:
        with self.summary.step("A reader begins to query the view all the time") as figures:
            services = self.services
            old, new = expected(services, self.windows)
            shown = served(services, self.windows)
            self.summary.check(
                "the view shows what the events add up to",
                shown == old,
                f"{sum(n for n, _ in old.values()):,} orders",
            )
            answers = {OLD: old, NEW: new}
            self.reader = Reader(ask=lambda: served(services, self.windows), answers=answers).start()
            figures["orders_with_cancelled"] = sum(orders for orders, _ in old.values())
            figures["orders_without_cancelled"] = sum(orders for orders, _ in new.values())

    def release(self, title: str, phase: str, tables: list[str] | None = None) -> None:
        """Tables that were rolled back are planned again where they are named."""
        with self.summary.step(f"{title} (DAG `release`)") as figures:
            airflow, before = self.airflow(), self.lake.release()
            named = {"tables": tables} if tables else {}
            run = airflow.trigger("release", {"definitions": changed_definitions(), **named})
            airflow.wait("release", run, self._seen, approve="approve")
            for line in airflow.result("release", run, "compare") or []:
                self.summary.say(line.replace("[", "\\["))
            promoted = airflow.result("release", run, "promote") or {}
            figures["release"] = f"{before} -> {self.lake.release()}"
            figures["promoted"] = {key: promoted[key] for key in ("release", "followed") if key in promoted}
            self._check_reader(phase)
            plan = airflow.result("release", run, "plan")["id"]
            self.summary.where["report"] = f"{self.services.sql_url.rstrip('/')}/reports/{plan}"

    def roll_back(self) -> None:
        with self.summary.step("The release is rolled back (DAG `rollback`)") as figures:
            airflow, before = self.airflow(), self.lake.release()
            run = airflow.trigger("rollback", {"reason": "the demo shows that it can"})
            airflow.wait("rollback", run, self._seen)
            figures["release"] = f"{before} -> {self.lake.release()}"
            self._check_reader(OLD)

    def crash(self, part: str, title: str) -> None:
        with self.summary.step(title) as figures:
            began = time.monotonic()
            pid = kill(self.settings, part)
            wait_back(self.settings, part, pid)
            figures["back_after_seconds"] = round(time.monotonic() - began, 1)
            self.lake.caught_up(TOPIC, self._ends())
            figures["caught_up_after_seconds"] = round(time.monotonic() - began, 1)
            self.summary.check(
                "the producer did not notice more than a pause",
                self.steady is not None and self.steady.running,
            )

    def stop_reading(self) -> None:
        with self.summary.step("The reader and the producer stop") as figures:
            assert self.reader and self.steady
            self.reader.stop()
            figures["reader"] = self.reader.figures()
            seen, check = self.reader, self.summary.check
            check("the reader never saw an error", not seen.errors, "; ".join(seen.errors[:2]))
            check("the reader never saw a mixture", not seen.mixtures, "; ".join(seen.mixtures[:2]))
            in_order = seen.phases == [OLD, NEW, OLD, NEW]
            check("the reader saw old, new, old, new", in_order, ", ".join(seen.phases))
            made = self.steady.stop()
            self.sent += made["acknowledged"]
            figures["steady_records"] = made["acknowledged"]
            figures["acknowledged_in_all"] = self.sent

    def ask_oracle(self) -> None:
        with self.summary.step("The independent oracle recomputes everything from the topic") as figures:
            ends = self._ends()
            self.lake.caught_up(TOPIC, ends)
            in_topic = sum(ends.values())
            self.summary.check(
                "every acknowledged record is in the topic once",
                in_topic == self.sent,
                f"{in_topic:,} records, {self.sent:,} acknowledged",
            )
            asked = [
                sys.executable, "-m", "tests.oracle", "--services", str(self.settings.services_file),
                "--topic", TOPIC, "--ends", json.dumps(ends), "--without-cancelled", "--json",
            ]  # fmt: skip
            done = subprocess.run(asked, stdout=subprocess.PIPE, text=True)
            try:
                found = json.loads(done.stdout)
            except ValueError as error:
                raise DemoError(f"the oracle failed with exit code {done.returncode}") from error
            figures["seconds_of_the_oracle"] = found["seconds"]
            figures["records"] = found["records"]
            figures["verdicts"] = found["verdicts"]
            for name, one in found["tables"].items():
                detail = f"{one['rows']:,} rows" if one["equal"] else f"{one['differing']:,} keys differ"
                self.summary.check(f"{name} equals what the oracle computed", one["equal"], detail)
                for example in one["examples"][:3]:
                    self.summary.say(str(example).replace("[", "\\["))
            logged = self._topic()["counts"]
            same = {name: int(logged.get(name, 0)) for name in found["verdicts"]} == found["verdicts"]
            self.summary.check("the log counts the same verdicts", same, "" if same else str(logged))

    def close(self) -> None:
        """End what the demo started itself; the services stay up."""
        if self.reader:
            self.reader.stop()
        if self.steady:
            self.steady.kill()

    def _check_reader(self, phase: str) -> None:
        seen = self.reader is not None and self.reader.saw(phase)
        self.summary.check(f"the reader sees the {phase} definition", seen)

    def _ends(self) -> dict[int, int]:
        return end_offsets(self.services.kafka("ingest").client(), TOPIC)

    def _topic(self) -> dict[str, Any]:
        found: dict[str, Any] = next(one for one in self.lake.status()["topics"] if one["name"] == TOPIC)
        return found

    def _seen(self, task: str, state: str) -> None:
        if state not in ("scheduled", "queued"):
            self.summary.say(f"[dim]{task.replace('[', chr(92) + '[')}: {state}[/]")


def changed_definitions() -> dict[str, Any]:
    """Today's definitions, but sales leave out cancelled orders."""
    definitions = {table.name: table.to_json() for table in TABLES}
    definitions[CHANGED]["where"] = "status <> 'cancelled'"
    return definitions


def _run(*arguments: str) -> None:
    done = subprocess.run(twinlake(*arguments), capture_output=True, text=True, env=dict(os.environ))
    if done.returncode:
        raise DemoError(f"`twinlake {' '.join(arguments)}` failed: {(done.stderr or done.stdout)[-800:]}")


def _lines(*arguments: str) -> Any:
    """What a command prints, line by line while it runs."""
    started = subprocess.Popen(
        twinlake(*arguments), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert started.stdout
    last: list[str] = []
    for line in started.stdout:
        if line.strip():
            last = [*last[-9:], line.rstrip()]
            yield line.rstrip()
    if started.wait():
        raise DemoError(f"`twinlake {' '.join(arguments)}` failed: " + "\n".join(last))
