"""Build: each green version of a plan, brought to its logs' ends, certified, then maintained like blue."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from twinlake.base.errors import DifferenceError
from twinlake.base.job import Failed, Run
from twinlake.base.times import format_moment
from twinlake.base.waiting import holding
from twinlake.batch.certify import difference_error, new_certificate
from twinlake.definitions.fingerprint import fingerprint
from twinlake.kinds.all import from_json
from twinlake.kinds.analysis import problems
from twinlake.kinds.dependencies import ordered, upstream_topics
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.plans import Change, Plan
from twinlake.lake.catalog.version import Version, next_build
from twinlake.lake.open_lake import OpenLake
from twinlake.releases.plan import newest_alike
from twinlake.topics.earlier import made_with

CREATE_WAIT_S = 120.0
_creating = threading.Lock()


@dataclass(frozen=True, kw_only=True)
class Built:
    """The green version of each switched table; `built` are those that were not there before.

    `records` of the logs were read for them in `seconds`. `certificates` has None where a log is empty.
    """

    plan: str
    greens: dict[str, str]
    built: tuple[str, ...]
    records: int
    seconds: float
    certificates: dict[str, Certificate | None]

    def to_json(self) -> dict[str, Any]:
        return {
            **vars(self), "built": list(self.built), "certificates": _as_json(self.certificates)
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Unequal:
    """A new version that batch did not confirm."""

    certificate: Certificate

    def to_json(self) -> dict[str, Any]:
        return {"certificate": self.certificate.to_json()}


def build(lake: OpenLake, plan: Plan, run: Run) -> Built | Failed:
    """Make every green version that is not there yet. Idempotent: killed anywhere, a second call goes on.

    From its first step on a version is living: it is maintained like blue, and a restarted server
    goes on with it.
    """
    plan.refuse_outdated()
    began, records, built = time.monotonic(), 0, []
    greens: dict[str, Version] = {}
    for change in plan.switched:  # all at once: each is opened and brought forward by its own thread
        run.check_cancelled()
        green = green_version(lake, plan, change.table)
        if green is None:
            green = _create(lake, plan, change, run)
            built.append(green.table)
        greens[change.table] = green
        records += change.records
    for green in greens.values():
        made = certify_first(lake, green, run)
        if made and not made.equal:
            remedy = "the definition is not a pure function of its log, or the version's files were changed"
            error = difference_error(made, f"the new version {green}", remedy)
            return Failed(error=error, result=Unequal(certificate=made))
    return Built(
        plan=plan.id,
        greens={table: green.name for table, green in greens.items()},
        built=tuple(built),
        records=records,
        seconds=round(time.monotonic() - began, 1),
        certificates={table: lake.certificates.newest(table, green.name) for table, green in greens.items()},
    )


def certify_first(lake: OpenLake, version: Version, run: Run) -> Certificate | None:
    """Brings the version to its logs' ends, and certifies it there where it has no certificate yet.

    The certificate that was made; none is made over empty logs.
    """
    ends = {topic: lake.logs[topic].end() for topic in version.topics}
    lake.versions.advance_to(version, ends, run)
    run.check_cancelled()
    if any(ends.values()) and lake.certificates.newest(version.table, version.name) is None:
        return new_certificate(lake, version, run)
    return None


def green_version(lake: OpenLake, plan: Plan, table: str) -> Version | None:
    """The living version that means what the plan wants of the table, the newest one; None as long as it is
    not built. One that reads tables reads their versions of this plan."""
    return plan_versions(lake, plan).get(table)


def plan_versions(lake: OpenLake, plan: Plan) -> dict[str, Version]:
    """By table, the versions that the plan makes live, as far as they are built."""
    return versions_among(plan, lake.versions.living(), lake.versions.usable())


def versions_among(plan: Plan, living: Sequence[Version], usable: Sequence[Version]) -> dict[str, Version]:
    """The same of these living versions, some of which can go on."""
    found = dict[str, Version]()
    for change in plan.changes:  # each stands after those that it reads
        reads = {table: found[table].name if table in found else None for table in change.reads}
        same = newest_alike(usable, change.table, change.fingerprint, reads)
        if change.action == "unchanged":  # what is live stays, whatever was built like it since
            same = next((one for one in living if (one.table, one.name) == (change.table, change.blue)), None)
        if same is not None:
            found[change.table] = same
    return found


def _create(lake: OpenLake, plan: Plan, change: Change, run: Run) -> Version:
    assert change.fingerprint is not None  # only a removed table has none
    with holding(_creating, "another build to make its version", CREATE_WAIT_S, run):
        versions = plan_versions(lake, plan)
        if change.table in versions:
            return versions[change.table]
        if missing := [table for table in change.reads if table not in versions]:
            raise DifferenceError(
                f"{change.table} of plan {plan.id} cannot be built",
                f"it reads table {missing[0]}, of which no version that the plan means is alive",
                "make a new plan with `twinlake plan`",
            )  # fmt: skip
        _refuse_outdated(lake, plan, change)
        inputs = from_json(plan.definitions[change.table]).inputs
        upstream = [topic for table in change.reads for topic in versions[table].topics]
        topics = tuple(dict.fromkeys([*inputs, *upstream]))
        version = Version(
            table=change.table,
            fingerprint=change.fingerprint,
            build=next_build(lake.path, change.table),
            definition=plan.definitions[change.table],
            topics=topics,
            contracts={topic: lake.logs[topic].topic.contract.version for topic in topics},
            created_at=format_moment(lake.clock()),
            git_commit=plan.git_commit,
            reads={table: versions[table].name for table in change.reads},
            schemas={topic: made_with(lake.logs[topic].topic) for topic in topics},
        )
        lake.versions.start(version)
        return version


def _refuse_outdated(lake: OpenLake, plan: Plan, change: Change) -> None:
    """DifferenceError for a definition that means something else than when it was planned: a topic has
    another schema or contract by now."""
    known = {one.name: one for one in ordered(map(from_json, plan.definitions.values()))}
    table = known[change.table]
    topics = {name: lake.logs[name].topic for name in upstream_topics(table, known)}
    planned = {one.table: one.fingerprint for one in plan.changes if one.fingerprint}
    found = next(problems(table, topics, lake.spark, known), None)
    if found is None and fingerprint(table, topics, lake.spark, known, planned) == change.fingerprint:
        return
    said = found.why_text if found else f"the schema or contract of {', '.join(topics)}, or Twinlake, changed"
    raise DifferenceError(
        f"{change.table} of plan {plan.id} cannot be built",
        f"it means something else than when it was planned: {said}",
        "make a new plan with `twinlake plan`",
    )


def _as_json(certificates: Mapping[str, Certificate | None]) -> dict[str, Any]:
    return {table: made.to_json() if made else None for table, made in certificates.items()}
