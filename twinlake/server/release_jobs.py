"""The kinds of jobs of a release: check, plan, build, diff, sample, gate, promote, reject, rollback, retire,
restructure.

Each is idempotent: killed anywhere, the same job started again finds what was done and does the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from twinlake.base.errors import NotFoundError, OtherServerError, TwinlakeError, UsageError
from twinlake.base.job import Asker, Failed, Run
from twinlake.base.version import commit_of
from twinlake.definitions.load_in_subprocess import Written, written
from twinlake.definitions.premises import code
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.release_log import NOBODY
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases import decide, gate
from twinlake.releases.build import Built, build
from twinlake.releases.compare import compare
from twinlake.releases.comparison import Comparison
from twinlake.releases.gate_checks import Gate
from twinlake.releases.plan import describe
from twinlake.releases.promote import Switched, promote, rollback
from twinlake.releases.propose import propose
from twinlake.releases.report import write_report
from twinlake.releases.retire import Retired, retire
from twinlake.releases.sampled import SampledChange
from twinlake.releases.sampled_change import sample
from twinlake.releases.tiled import Taken, outdated, take_on
from twinlake.server.job_kind import JobKind
from twinlake.server.release_models import (
    BuildParams,
    CheckParams,
    DiffParams,
    GateParams,
    PlanParams,
    PromoteParams,
    RejectParams,
    RestructureParams,
    RetireParams,
    RollbackParams,
    SampleParams,
)

if TYPE_CHECKING:
    from twinlake.lake.catalog.release_log import Release
    from twinlake.releases.check import Report
    from twinlake.server.jobs import Jobs


RESTRUCTURE = "restructure"


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan, with the lines in which a person reads it."""

    plan: Plan
    wrong: tuple[TwinlakeError, ...] = ()
    """What is wrong with files whose definitions are not in it."""

    def to_json(self) -> dict[str, Any]:
        lines = [*describe(self.plan), *(f"not planned: {error.what}" for error in self.wrong)]
        wrong = {"wrong": [error.to_json() for error in self.wrong]} if self.wrong else {}
        return {**self.plan.to_json(), "lines": lines, **wrong}


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A comparison or a gate, with the page that shows it where there is one."""

    found: Comparison | Gate
    report: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**self.found.to_json(), **({"report": self.report} if self.report else {})}


def do_plan(lake: OpenLake, params: PlanParams, run: Run) -> Planned:
    found, commit = Written(definitions=params.definitions or {}), params.git_commit
    if params.definitions is None:
        run.say("reading the project's definitions")
        found, commit = written(*lake.settings.sources), commit_of(lake.settings.project.root)
    plan = propose(lake, found.definitions, commit, run, params.tables, params.remove or ())
    decide.note_proposal(lake, plan, run.asker)
    return Planned(plan=plan, wrong=found.wrong)


def do_build(lake: OpenLake, params: BuildParams, run: Run) -> Built | Failed:
    return build(lake, lake.plans.load(params.plan), run)


def do_diff(lake: OpenLake, params: DiffParams, run: Run) -> Reported:
    plan = None if params.plan is None else lake.plans.load(params.plan)
    found = compare(lake, *_sides(lake, params), run)
    if plan is None:
        return Reported(found=found)
    lake.plans.save_diff(plan.id, params.table, found.to_json())
    return Reported(found=found, report=str(write_report(lake, plan)))


def do_sample(lake: OpenLake, params: SampleParams, run: Run) -> SampledChange:
    definitions = params.definitions
    if definitions is None:
        run.say("reading the project's definitions")
        definitions = written(*lake.settings.sources).definitions
    return sample(lake, params.table, definitions, run, records=params.records, keys=params.keys)


def do_gate(lake: OpenLake, params: GateParams, run: Run) -> Reported:
    plan = lake.plans.load(params.plan)
    plan.refuse_outdated()
    if params.unwitnessed and params.reasons_by is None:
        why = "a reason is kept with who has given it"
        raise UsageError("nobody is named who gives the reasons", why, "name them as `reasons_by`")
    reasons = _excused(params.unwitnessed)
    asked = gate.ask(lake, plan, run, unwitnessed=reasons, by=params.reasons_by or "")
    return Reported(found=asked, report=str(write_report(lake, plan)))


def do_promote(lake: OpenLake, params: PromoteParams, run: Run) -> Switched | Failed:
    plan, excused = lake.plans.load(params.plan), _excused(params.unwitnessed)
    decide.refuse_unapproved(lake, plan, params.approved_by, run.asker)
    return promote(lake, plan, params.approved_by, run, excused)


def do_reject(lake: OpenLake, params: RejectParams, run: Run) -> decide.Decision:
    return decide.reject(lake, lake.plans.load(params.plan), params.rejected_by, params.reason)


def do_rollback(lake: OpenLake, params: RollbackParams, run: Run) -> Switched:
    return rollback(lake, params.to, params.approved_by, run, params.reason, params.live)


def do_retire(lake: OpenLake, params: RetireParams, run: Run) -> Retired:
    retired = retire(lake, params.keep, run)
    lake.damages.look(lake.tables())  # a damaged file of a version that nobody needs any more is no problem
    return retired


def do_restructure(lake: OpenLake, params: RestructureParams, run: Run) -> Taken | Failed:
    return take_on(lake, run)


def restructure_live(lake: OpenLake, live: Release | None, jobs: Jobs) -> None:
    """Ask for it where the live release needs it, once: what that says holds until there is another one."""
    if live is not None and outdated(lake):
        asker = Asker(by=NOBODY, why="tables are stored as no new version is")
        jobs.submit(RESTRUCTURE, {}, f"{RESTRUCTURE} release {live.number}", asker)


def _excused(given: Sequence[str]) -> dict[str, str]:
    """NAME=REASON, by the name of a table or topic."""
    pairs = (one.partition("=") for one in given)
    return {table: reason.strip() for table, _, reason in pairs}


def do_check(lake: OpenLake, params: CheckParams, run: Run) -> Report:
    """OtherServerError where this server would answer for other code, or for other files."""
    from twinlake.releases.check import check  # it types by the witness, which a server seldom needs itself

    sources = lake.settings.sources
    remedy = "start the lake server again by this code, or let the command start Spark itself"
    if params.code != code():
        why = "its answer would be that of its own code"
        raise OtherServerError("the lake server runs other code of Twinlake's", why, remedy)
    if list(params.roots) != (mine := [str(project.root) for project in sources]):
        raise OtherServerError("the lake server is another project's", f"it has {', '.join(mine)}", remedy)
    run.say("reading the definitions")
    loaded = written(*sources).loaded()
    run.say("analysing them")
    return check(sources, lambda: lake.spark, lake=lake.path, loaded=loaded)


def _sides(lake: OpenLake, params: DiffParams) -> tuple[Version, Version]:
    blue = params.blue or lake.live_version(params.table)
    if blue is None:
        raise NotFoundError(f"table {params.table} has no live version to compare with", "it is new",
                            "name one with --blue")  # fmt: skip
    newest = lake.versions.newest(params.table)
    green = params.green or (newest.name if newest else blue)
    return lake.versions.get(params.table, blue), lake.versions.get(params.table, green)


KINDS = {
    "check": JobKind(params=CheckParams, handler=do_check),
    "plan": JobKind(params=PlanParams, handler=do_plan),
    "build": JobKind(params=BuildParams, handler=do_build),
    "diff": JobKind(params=DiffParams, handler=do_diff),
    "sample": JobKind(params=SampleParams, handler=do_sample),
    "gate": JobKind(params=GateParams, handler=do_gate),
    "promote": JobKind(params=PromoteParams, handler=do_promote, urgent=True),
    "reject": JobKind(params=RejectParams, handler=do_reject, urgent=True),
    "rollback": JobKind(params=RollbackParams, handler=do_rollback, urgent=True),
    "retire": JobKind(params=RetireParams, handler=do_retire),
    RESTRUCTURE: JobKind(params=RestructureParams, handler=do_restructure),
}
