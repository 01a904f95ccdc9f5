"""The kinds of jobs about logs and versions: rebuild, verify, maintain, accept, replay."""

from __future__ import annotations

from typing import Self

from pydantic import Field, field_validator, model_validator

from twinlake.base.errors import BusyError, NotFoundError, UsageError
from twinlake.base.job import Failed, Result, Run
from twinlake.base.waiting import holding
from twinlake.batch.certify import Asked, Certified, rebuild_version, verify_version
from twinlake.batch.maintain import Maintained, maintain
from twinlake.ingest.accept import Accepted, accept, acceptable
from twinlake.lake.log.quarantine import refuse_unknown
from twinlake.lake.open_lake import OpenLake, RunningIngest
from twinlake.server.job_kinds import JobKind, Name, Params

ACCEPT_WAIT_S = 300.0


class VerifyParams(Params):
    table: Name
    version: Name | None = None
    start: Name | None = Field(default=None, alias="from")
    end: Name | None = Field(default=None, alias="to")
    due: bool = False
    repair: bool = False

    @property
    def asked(self) -> Asked:
        return Asked(start=self.start, end=self.end, repair=self.repair, only_due=self.due)


class RebuildParams(VerifyParams):
    reason: str | None = Field(default=None, min_length=1, max_length=500)
    """Why a difference is repaired: such a job is kept for ever."""

    @model_validator(mode="after")
    def _of_a_repair(self) -> Self:
        if self.reason is not None and not self.repair:
            raise ValueError("reason is that of `repair`, which is not asked for")
        return self


class MaintainParams(Params):
    table: Name | None = None


class AcceptParams(Params):
    topic: Name


class ReplayParams(Params):
    topic: Name
    reasons: tuple[Name, ...] = Field(default=(), max_length=100, strict=False)  # JSON has lists

    @field_validator("reasons")
    @classmethod
    def _published(cls, reasons: tuple[str, ...]) -> tuple[str, ...]:
        try:
            refuse_unknown(reasons, replays=True)
        except UsageError as error:
            raise ValueError(str(error)) from error
        return reasons


def do_rebuild(lake: OpenLake, params: RebuildParams, run: Run) -> Certified | Failed:
    """Compute the windows from the log again, compare, replace what closed segments hold."""
    return rebuild_version(lake, lake.version(params.table, params.version), run, params.asked)


def do_verify(lake: OpenLake, params: VerifyParams, run: Run) -> Certified | Failed:
    """Compare speed with batch and certify it: over all of history, a range of windows, or what is due."""
    return verify_version(lake, lake.version(params.table, params.version), run, params.asked)


def do_maintain(lake: OpenLake, params: MaintainParams, run: Run) -> Maintained:
    """Compact logs, delete files and commits that nobody needs, of one table or of all."""
    return maintain(lake, params.table, run)


def do_accept(lake: OpenLake, params: AcceptParams, run: Run) -> Accepted:
    """Admit a recreated topic as the next epoch of its log, and read on."""
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
    """Judge what a topic has in quarantine again, by the contract in force; tables take what became valid."""
    ingest = _ingest(lake, params.topic)
    if paused := lake.pauses.of("topic", params.topic):
        raise BusyError(f"topic {params.topic} is {paused.words}", "its log stands still", paused.resuming)
    return ingest.replay(params.reasons, run)


def _ingest(lake: OpenLake, topic: str) -> RunningIngest:
    if topic not in lake.ingests:
        known = ", ".join(lake.ingests)
        raise NotFoundError(f"there is no topic {topic!r}", f"known: {known}", "check the name")
    return lake.ingests[topic]


KINDS = {
    "rebuild": JobKind(params=RebuildParams, handler=do_rebuild),
    "verify": JobKind(params=VerifyParams, handler=do_verify),
    "maintain": JobKind(params=MaintainParams, handler=do_maintain),
    "accept": JobKind(params=AcceptParams, handler=do_accept),
    "replay": JobKind(params=ReplayParams, handler=do_replay),
}
