"""Releases: the job kinds plan, build, diff and gate. What makes a release live is in `promotion.py`.

Each is idempotent: killed anywhere, the same job started again finds what was done and does the rest.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field

from jobs.batch import certificate as certificates
from jobs.batch.diff import Diff
from jobs.errors import DifferenceError, NotFoundError, UsageError
from jobs.kinds import compile
from jobs.kinds.table import Table
from jobs.lake import delta, release_log
from jobs.lake.version import Version, next_build
from jobs.releases import plan, report
from jobs.releases.compare import compare_versions, pinned_view
from jobs.releases.gate import (
    MAX_CERTIFICATE_AGE_SECONDS,
    MAX_LAG_SECONDS,
    Check,
    Gate,
    certificate_check,
    columns_check,
    expectation_checks,
    lag_check,
)
from jobs.releases.plan import History, Plan, Proposal
from jobs.run import Run
from jobs.server.job_kinds import Kind, Params
from jobs.times import format_moment, parse_moment
from jobs.topics.contract_file import load_contract
from jobs.topics.topic import load_topic

if TYPE_CHECKING:
    from jobs.lake.log import Log
    from jobs.server.lake_server import LakeServer

LAG_PATIENCE_S = 30.0
"""The gate waits so long for a green version that is just catching up."""
_creating = threading.Lock()


class PlanParams(Params):
    definitions: dict[str, dict[str, Any]] = Field(min_length=1)
    git_commit: str | None = Field(default=None, max_length=64)


class BuildParams(Params):
    plan: str


class DiffParams(Params):
    table: str
    blue: str | None = None
    green: str | None = None
    plan: str | None = None


class GateParams(Params):
    plan: str


def do_plan(server: LakeServer, params: PlanParams, run: Run) -> dict[str, Any]:
    """What making these definitions live would change; stored, so that the next steps mean the same."""
    proposals = []
    for number, (name, stored) in enumerate(params.definitions.items()):
        run.progress(number, len(params.definitions), "tables", f"analysing {name}")
        proposals.append(_proposal(server, name, stored))
    run.progress(1, 1, "tables", "reading how far history reaches")
    made = plan.decide(
        live=release_log.live(server.lake),
        proposals=proposals,
        versions=server.versions.living(),
        histories={topic: history(server.logs[topic]) for topic in {p.topic for p in proposals}},
        created_at=_now(),
        git_commit=params.git_commit,
        records_per_second=_measured_rate(server) or plan.RECORDS_PER_SECOND,
    )
    made.save(server.lake)
    return made.to_json()


def do_build(server: LakeServer, params: BuildParams, run: Run) -> dict[str, Any]:
    """Make every green version that is not there yet, bring it to the log's end and certify it there.

    From its first step on a version is living: it is fed like blue, and a restarted server goes on with it.
    """
    made = plan.load(server.lake, params.plan)
    began, records, built = time.monotonic(), 0, []
    greens: dict[str, Version] = {}
    for change in made.switched:  # all at once: each is opened and brought forward by its own thread
        run.check_cancelled()
        green = green_version(server, made, change)
        if green is None:
            green = _create(server, made, change)
            built.append(green.table)
        greens[change.table] = green
        records += change.records
    for green in greens.values():
        end = server.logs[green.topic].end()
        server.versions.advance_to(green, end, run)
        run.check_cancelled()
        if end and server.certificates.newest(green.table, green.name) is None:
            run.progress(0, 0, "", f"comparing {green.table} with its log")
            _certify(server, green, run)
    seconds = time.monotonic() - began
    return {
        "plan": made.id,
        "greens": {table: green.name for table, green in greens.items()},
        "built": built,
        "records": records,
        "seconds": round(seconds, 1),
        "certificates": {table: _certificate(server, green) for table, green in greens.items()},
    }


def do_diff(server: LakeServer, params: DiffParams, run: Run) -> dict[str, Any]:
    """Blue (the live version unless named) against green (the newest living one unless named)."""
    blue, green = _sides(server, params)
    run.progress(0, 2, "steps", f"bringing both versions of {params.table} to one position")
    pins = server.versions.pin_together([blue, green], run)
    run.progress(1, 2, "steps", f"comparing {params.table}")
    feeds = [server.versions.feed(version) for version in (blue, green)]
    found = compare_versions((feeds[0], pins[0]), (feeds[1], pins[1]))
    if params.plan is None:
        return found.to_json()
    made = plan.load(server.lake, params.plan)
    _store(_diff_file(server.lake, made.id, params.table), found.to_json())
    page = write_report(server, made)
    return {**found.to_json(), "report": str(page)}


def do_gate(server: LakeServer, params: GateParams, run: Run) -> dict[str, Any]:
    """Ask everything that must hold; the answer, passed or not, is the result."""
    made = plan.load(server.lake, params.plan)
    gate = ask_gate(server, made, run)
    write_report(server, made)
    return {**gate.to_json(), "report": str(report.report_file(server.lake, made.id))}


def ask_gate(server: LakeServer, made: Plan, run: Run, recent: bool = False) -> Gate:
    """The gate of a plan, stored beside it.

    With `recent`, what the contracts expect is not asked again of views that met it a few minutes ago;
    production, certificates and lags are asked every time.
    """
    live = release_log.live(server.lake)
    met = _recently_met(server, made) if recent else {}
    checks = [production_check(made, live)]
    for number, change in enumerate(made.switched):
        run.check_cancelled()
        run.progress(number, len(made.switched), "tables", f"asking about {change.table}")
        green = green_version(server, made, change)
        if green is None:
            detail = f"it is not built: run `twinlake build {made.id}`"
            checks.append(Check(table=change.table, name="version", passed=False, detail=detail))
            continue
        checks += [recent_certificate(server, green, run), _lag(server, green, run)]
        checks += met.get(change.table) or _contract_checks(server, green)
    gate = Gate(plan=made.id, at=_now(), checks=tuple(checks))
    _store(_gate_file(server.lake, made.id), gate.to_json())
    return gate


def production_check(made: Plan, live: release_log.Release | None) -> Check:
    """The release that the plan was made against is still the live one."""
    now = live.number if live else None
    same = now == made.release_before
    words = [f"release {number}" if number else "no release" for number in (made.release_before, now)]
    detail = (
        f"{words[1]} is live, as in the plan"
        if same
        else f"planned against {words[0]}, now {words[1]} is live"
    )
    return Check(table="", name="production", passed=same, detail=detail)


def _recently_met(server: LakeServer, made: Plan) -> dict[str, list[Check]]:
    """By table, the checks of its contract in a gate that passed not long ago."""
    file = _gate_file(server.lake, made.id)
    if not file.exists():
        return {}
    gate = Gate.from_json(json.loads(file.read_text()))
    age_seconds = (datetime.now(UTC) - parse_moment(gate.at)).total_seconds()
    if not gate.passed or age_seconds > MAX_CERTIFICATE_AGE_SECONDS:
        return {}
    return {
        change.table: [
            check
            for check in gate.checks
            if check.table == change.table and check.name in ("columns", "expectation")
        ]
        for change in made.switched
    }


def _contract_checks(server: LakeServer, green: Version) -> list[Check]:
    contract = load_contract(server.settings.contracts / f"{green.table}.yaml")
    feed = server.versions.feed(green)
    pin = server.versions.pin(green)
    with pinned_view(feed, pin) as view:
        columns = columns_check(green.table, contract, dict(view.dtypes))
        checks = [columns]
        if columns.passed:
            view = view.persist() if server.stored(green) else view
            try:
                checks += expectation_checks(contract, view)
            finally:
                view.unpersist()
    return checks


def recent_certificate(server: LakeServer, version: Version, run: Run) -> Check:
    """An equal certificate that has become old is made again; a missing or unequal one is not."""
    found = _certificate(server, version)
    if found and found["equal"] and _age_seconds(found) > MAX_CERTIFICATE_AGE_SECONDS:
        run.progress(0, 0, "", f"comparing {version.table} with its log again")
        server.certificates.add(certificates.verify(*_pinned(server, version), run, _now()))
        found = _certificate(server, version)
    return certificate_check(version.table, version.name, found, _age_seconds(found) if found else 0.0)


def _lag(server: LakeServer, version: Version, run: Run) -> Check:
    until = time.monotonic() + LAG_PATIENCE_S
    while True:
        health = next(
            h for h in server.versions.health() if (h.table, h.version) == (version.table, version.name)
        )
        check = lag_check(version.table, health.lag_seconds, health.stalled, MAX_LAG_SECONDS)
        if check.passed or time.monotonic() > until or run.cancelled.wait(0.5):
            return check


def green_version(server: LakeServer, made: Plan, change: plan.Change) -> Version | None:
    """The living version that means what the plan wants, the newest one; None as long as it is not built."""
    same = [
        version
        for version in server.versions.living()
        if version.table == change.table and version.fingerprint == change.fingerprint
    ]
    return max(same, key=lambda version: version.build, default=None)


def _create(server: LakeServer, made: Plan, change: plan.Change) -> Version:
    assert change.fingerprint is not None
    with _creating:
        there = green_version(server, made, change)
        if there is not None:
            return there
        definition = made.definitions[change.table]
        topic = definition["source"]
        version = Version(
            table=change.table,
            fingerprint=change.fingerprint,
            build=next_build(server.lake, change.table),
            definition=definition,
            topic=topic,
            contract=server.logs[topic].topic.contract.version,
            created_at=_now(),
            git_commit=made.git_commit,
        )
        server.versions.start(version)
        return version


def _certify(server: LakeServer, version: Version, run: Run) -> None:
    made = server.certificates.add(certificates.verify(*_pinned(server, version), run, _now()))
    if made.equal:
        return
    server.incident(made)
    error = DifferenceError(
        f"speed and batch differ in {made.differing} keys of the new version {version.table} {version.name}",
        "; ".join(sorted({found["why"] for found in made.differences})),
        "the definition is no pure function of its log, or the version's files were changed",
    )
    error.result = {"certificate": made.to_json()}  # type: ignore[attr-defined]
    raise error


def _pinned(server: LakeServer, version: Version) -> tuple[Any, Any]:
    return server.versions.feed(version), server.versions.pin(version)


def _certificate(server: LakeServer, version: Version) -> dict[str, Any] | None:
    found = server.certificates.newest(version.table, version.name)
    return found.to_json() if found else None


def _age_seconds(certificate: Mapping[str, Any]) -> float:
    return (datetime.now(UTC) - parse_moment(certificate["created_at"])).total_seconds()


def _proposal(server: LakeServer, name: str, stored: dict[str, Any]) -> Proposal:
    table = Table.from_json(stored)
    if table.name != name:
        raise UsageError(
            f"definition {name!r} calls itself {table.name!r}", "", "give each under its own name"
        )
    log = server.logs.get(table.source)
    if log is None:
        raise NotFoundError(f"table {name} reads topic {table.source!r}, which this lake has not",
                            f"it has {', '.join(sorted(server.logs))}", "add its files")  # fmt: skip
    _refuse_outdated(server, log)
    compile.analyse(table, log.topic, server.spark)
    return Proposal(
        table=name,
        definition=table.to_json(),
        fingerprint=compile.fingerprint(table, log.topic, server.spark),
        topic=table.source,
        kind=table.kind,
    )


def _refuse_outdated(server: LakeServer, log: Log) -> None:
    """Ingest judges by the contract it started with; planning against newer files would promise otherwise."""
    now = load_topic(log.topic.name, server.settings.project)
    if (now.contract.fingerprint, now.newest) != (log.topic.contract.fingerprint, log.topic.newest):
        raise UsageError(
            f"the contract or schema of topic {log.topic.name} has changed",
            "the lake server still works with the files it found when it started",
            "restart it with `twinlake down` and `twinlake up`, then plan again",
        )


def history(log: Log) -> History:
    """What the log of a topic could rebuild from; one look at three narrow columns."""
    from pyspark.sql import functions as F

    name, end = log.topic.name, log.end()
    if end == 0:
        return History(topic=name, records=0, bytes=0, why="the log is empty")
    size = int(delta.snapshot(log.spark, log.path).sizeInBytes())
    firsts = (
        log.all(0, end)
        .groupBy("epoch", "partition")
        .agg(F.min("offset").alias("first"), F.count("*").alias("records"), F.min("timestamp").alias("at"))
        .collect()
    )
    records = sum(row["records"] for row in firsts)
    first_at = min((row["at"] for row in firsts), default=None)
    late = sorted((row["epoch"], row["partition"], row["first"]) for row in firsts if row["first"] > 0)
    since = f" since {format_moment(first_at.astimezone())}" if first_at else ""
    why = f"the log holds every record of the topic{since}"
    if late:
        gaps = ", ".join(f"partition {partition} from offset {first}" for _, partition, first in late)
        why = f"the log begins later than the topic: {gaps}"
    return History(
        topic=name, records=records, bytes=size, complete=not late, why=why,
        first_at=format_moment(first_at.astimezone()) if first_at else None,
    )  # fmt: skip


def _measured_rate(server: LakeServer) -> float | None:
    """Records per second of this lake's last long build, which tells more than any constant."""
    for job in server.jobs.list():
        result = job.result if job.kind == "build" and job.state == "succeeded" else None
        if result and result.get("built") and result.get("records", 0) > 100_000 and result.get("seconds"):
            return result["records"] / result["seconds"]
    return None


def _sides(server: LakeServer, params: DiffParams) -> tuple[Version, Version]:
    blue = params.blue or server.live_version(params.table)
    if blue is None:
        raise NotFoundError(f"table {params.table} has no live version to compare with", "it is new",
                            "name one with --blue")  # fmt: skip
    green = params.green
    if green is None:
        newest = server.versions.newest(params.table)
        green = newest.name if newest else blue
    return server.versions.get(params.table, blue), server.versions.get(params.table, green)


def write_report(server: LakeServer, made: Plan) -> Path:
    """The page beside the plan, from whatever has been stored of it so far."""
    diffs = [
        Diff.from_json(json.loads(file.read_text()))
        for change in made.switched
        if (file := _diff_file(server.lake, made.id, change.table)).exists()
    ]
    gate_file = _gate_file(server.lake, made.id)
    gate = Gate.from_json(json.loads(gate_file.read_text())) if gate_file.exists() else None
    greens = {}
    for change in made.switched:
        green = green_version(server, made, change)
        if green is not None:
            greens[change.table] = green.name
    return report.write(server.lake, made, diffs, gate, greens, _now())


def _diff_file(lake: Path, plan_id: str, table: str) -> Path:
    return plan.plan_file(lake, plan_id).with_name(f"{plan_id}.diff.{table}.json")


def _gate_file(lake: Path, plan_id: str) -> Path:
    return plan.plan_file(lake, plan_id).with_name(f"{plan_id}.gate.json")


def _store(file: Path, content: dict[str, Any]) -> None:
    beside = file.with_name(file.name + ".new")
    beside.write_text(json.dumps(content))
    os.replace(beside, file)


def _now() -> str:
    return format_moment(datetime.now(UTC))


KINDS = {
    "plan": Kind(params=PlanParams, handler=do_plan),
    "build": Kind(params=BuildParams, handler=do_build),
    "diff": Kind(params=DiffParams, handler=do_diff),
    "gate": Kind(params=GateParams, handler=do_gate),
}
