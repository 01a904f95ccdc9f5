"""The kinds of jobs about logs and versions: rebuild, verify, maintain, expire, accept, replay."""

from __future__ import annotations

from dataclasses import replace

from pydantic import field_validator

from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.base.job import Failed, Result, Run
from twinlake.base.waiting import holding
from twinlake.batch.certify import Asked, Certified, rebuild_version, verify_version
from twinlake.batch.maintain import Maintained, maintain
from twinlake.batch.retention import Expiry, expire
from twinlake.ingest.accept import Accepted, accept, acceptable
from twinlake.lake.log.quarantine import refuse_unknown
from twinlake.lake.open_lake import OpenLake, RunningIngest
from twinlake.server.job_kind import JobKind
from twinlake.server.job_models import (
    AcceptParams,
    ExpireParams,
    MaintainParams,
    RebuildParams,
    ReplayParams,
    VerifyParams,
)

ACCEPT_WAIT_S = 300.0


class PublishedReplayParams(ReplayParams):  # which reasons there are is known further up than its model
    @field_validator("reasons")
    @classmethod
    def _published(cls, reasons: tuple[str, ...]) -> tuple[str, ...]:
        try:
            refuse_unknown(reasons, replays=True)
        except UsageError as error:
            raise ValueError(f"{error.what}; {error.remedy or error.why}") from error
        return reasons


def do_rebuild(lake: OpenLake, params: RebuildParams, run: Run) -> Certified | Failed:
    return rebuild_version(lake, lake.version(params.table, params.version), run, _asked(params))


def do_verify(lake: OpenLake, params: VerifyParams, run: Run) -> Certified | Failed:
    return verify_version(lake, lake.version(params.table, params.version), run, _asked(params))


def do_maintain(lake: OpenLake, params: MaintainParams, run: Run) -> Maintained:
    done = maintain(lake, params.table, run)
    gone = lake.publications.clean_up(lake, params.table)
    return replace(done, commit_files_deleted=done.commit_files_deleted + gone)


def do_expire(lake: OpenLake, params: ExpireParams, run: Run) -> Expiry:
    return expire(lake, params.topic, run, params.check, params.table)


def do_accept(lake: OpenLake, params: AcceptParams, run: Run) -> Accepted:
    ingest = _ingest(lake, params.topic)
    log = lake.logs[params.topic]
    with holding(lake.ingest_lock, "another change of its ingest to end", ACCEPT_WAIT_S, run):
        acceptable(lake.settings, log)  # nobody's ingest is stopped for nothing
        ingest.stop()
        try:
            return accept(lake.settings, log)
        finally:
            if not lake.pauses.of("topic", params.topic):
                ingest.start()


def do_replay(lake: OpenLake, params: ReplayParams, run: Run) -> Result:
    ingest = _ingest(lake, params.topic)
    if paused := lake.pauses.of("topic", params.topic):
        raise BusyError(f"topic {params.topic} is {paused.words}", "its log stands still", paused.resuming)
    return ingest.replay(params.reasons, run)


def _asked(params: RebuildParams | VerifyParams) -> Asked:
    return Asked(start=params.start, end=params.end, repair=params.repair, only_due=params.due)


def _ingest(lake: OpenLake, topic: str) -> RunningIngest:
    if topic not in lake.ingests:
        known = ", ".join(lake.ingests)
        raise NotFoundError(f"there is no topic {topic!r}", f"known: {known}", "check the name")
    return lake.ingests[topic]


KINDS = {
    "rebuild": JobKind(params=RebuildParams, handler=do_rebuild),
    "verify": JobKind(params=VerifyParams, handler=do_verify),
    "maintain": JobKind(params=MaintainParams, handler=do_maintain),
    "expire": JobKind(params=ExpireParams, handler=do_expire),
    "accept": JobKind(params=AcceptParams, handler=do_accept),
    "replay": JobKind(params=PublishedReplayParams, handler=do_replay),
}
