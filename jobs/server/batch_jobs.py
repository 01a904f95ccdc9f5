"""Layers: the job kinds of the batch layer (rebuild, verify), of maintenance, and of accepting a topic."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic import Field

from jobs.batch import certificate as certificates
from jobs.batch.rebuild import Rebuilt, rebuild
from jobs.errors import DifferenceError, NotFoundError
from jobs.kinds.table import Aggregate
from jobs.kinds.windows import WindowRange, window_range
from jobs.lake.version import Version
from jobs.run import Run
from jobs.server.job_kinds import Kind, Params
from jobs.times import format_moment

if TYPE_CHECKING:
    from jobs.server.lake_server import LakeServer

LANE_WAIT_S = 15 * 60.0
"""A rebuild waits so long for another one of the same version; then it ends "busy"."""


class RebuildParams(Params):
    table: str
    version: str | None = None
    start: str | None = Field(default=None, alias="from")
    end: str | None = Field(default=None, alias="to")
    repair: bool = False


class VerifyParams(Params):
    table: str
    version: str | None = None
    repair: bool = False


class AcceptParams(Params):
    topic: str


class MaintainParams(Params):
    table: str | None = None


def do_rebuild(server: LakeServer, params: RebuildParams, run: Run) -> dict[str, Any]:
    """Replace the closed segments by the batch result; a repaired difference is verified once more."""
    version = _version(server, params.table, params.version)
    feed = server.versions.feed(version)
    window = feed.definition.window if isinstance(feed.definition, Aggregate) else None
    windows = window_range(params.start, params.end, window.length if window else None, params.table)
    if not server.stored(version):
        made = server.certificates.add(certificates.verify(feed, server.versions.pin(version), run, _now()))
        result = {
            **Rebuilt(certificate=made, replaced=False, chunks=0, skipped=0).to_json(),
            **_named(version),
        }
        return _equal_or_failed(result, replaced=False)
    rebuilt = _rebuild(server, version, windows, params.repair, run)
    result = {**rebuilt.to_json(), **_named(version)}
    if not rebuilt.certificate.equal and rebuilt.replaced:
        run.progress(0, 0, "", "verifying what was repaired")
        again = server.certificates.add(certificates.verify(feed, server.versions.pin(version), run, _now()))
        result |= {"repaired": rebuilt.certificate.differences, **_verdict(again)}
    return _equal_or_failed(result, replaced=rebuilt.replaced)


def do_verify(server: LakeServer, params: VerifyParams, run: Run) -> dict[str, Any]:
    """Certify a version at a pinned position; with `repair` a difference is rebuilt away."""
    version = _version(server, params.table, params.version)
    feed = server.versions.feed(version)
    run.progress(0, 1, "comparisons", f"comparing {version.table} with its log")
    made = server.certificates.add(certificates.verify(feed, server.versions.pin(version), run, _now()))
    if not made.equal:
        server.incident(made)
    if made.equal or not params.repair:
        return _equal_or_failed({**_verdict(made), **_named(version)}, replaced=False)
    return do_rebuild(server, RebuildParams(table=params.table, version=params.version, repair=True), run)


def do_accept(server: LakeServer, params: AcceptParams, run: Run) -> dict[str, Any]:
    """Admit a recreated topic as the log's next epoch."""
    return server.accept(params.topic)


def do_maintain(server: LakeServer, params: MaintainParams, run: Run) -> dict[str, Any]:
    """The clean-up that also runs by itself."""
    return server.maintain(params.table)


def _rebuild(server: LakeServer, version: Version, windows: WindowRange, repair: bool, run: Run) -> Rebuilt:
    """With the lane held from before the segment is closed until the last replace."""
    staging = server.lake / "staging" / run.id
    with server.versions.lane(version, LANE_WAIT_S, run):
        owner = server.versions.owner(version)
        closed = owner.close_segment().result(600)
        done = rebuild(
            server.versions.feed(version),
            closed,
            lambda: owner.standing.segment,
            run,
            staging,
            _now(),
            windows,
            repair,
        )
    server.certificates.add(done.certificate)
    if not done.certificate.equal:
        server.incident(done.certificate)
    shutil.rmtree(staging, ignore_errors=True)
    return done


def _version(server: LakeServer, table: str, name: str | None) -> Version:
    """The named version, else the live one of the table, else the one built last."""
    if name is not None:
        return server.versions.get(table, name)
    live = server.live_version(table)
    version = server.versions.get(table, live) if live else server.versions.newest(table)
    if version is None:
        known = ", ".join(sorted({v.table for v in server.versions.living()})) or "none yet"
        raise NotFoundError(
            f"there is no table {table!r}", f"tables with a living version: {known}", "check the name"
        )
    return version


def _equal_or_failed(result: dict[str, Any], replaced: bool) -> dict[str, Any]:
    """A difference is an incident: the job fails, and keeps its whole result for whoever looks into it."""
    if result["equal"]:
        return result
    error = DifferenceError(
        f"speed and batch differ in {result['certificate']['differing']} keys of"
        f" {result['table']} {result['version']}",
        "; ".join(sorted({found["why"] for found in result["differences"]})),
        "find the cause; `twinlake rebuild` with --repair replaces what is stored by what the log gives"
        if not replaced
        else "find what changes the table beside the lake server; the difference came back after a repair",
    )
    error.result = result  # type: ignore[attr-defined]
    raise error


def _verdict(made: certificates.Certificate) -> dict[str, Any]:
    return {
        "equal": made.equal,
        "position": made.position,
        "rows_compared": made.rows_compared,
        "differences": made.differences,
        "differing": made.differing,
        "certificate": made.to_json(),
    }


def _named(version: Version) -> dict[str, str]:
    return {"table": version.table, "version": version.name}


def _now() -> str:
    return format_moment(datetime.now(UTC))


KINDS = {
    "rebuild": Kind(params=RebuildParams, handler=do_rebuild),
    "verify": Kind(params=VerifyParams, handler=do_verify),
    "accept": Kind(params=AcceptParams, handler=do_accept),
    "maintain": Kind(params=MaintainParams, handler=do_maintain),
}
