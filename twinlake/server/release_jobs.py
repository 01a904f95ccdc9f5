"""The kinds of jobs of a release: plan, build, diff, gate, promote, rollback, retire.

Each is idempotent: killed anywhere, the same job started again finds what was done and does the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from pydantic import Field, model_validator

from twinlake.base.defaults import KEPT_RELEASES
from twinlake.base.errors import NotFoundError
from twinlake.base.git import commit_of
from twinlake.base.job import Failed, Run
from twinlake.definitions.load_in_subprocess import written
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.version import Version
from twinlake.lake.open_lake import OpenLake
from twinlake.releases import gate
from twinlake.releases.build import Built, build
from twinlake.releases.compare import Comparison, compare
from twinlake.releases.gate_checks import Gate
from twinlake.releases.plan import describe
from twinlake.releases.promote import Switched, promote, rollback
from twinlake.releases.propose import propose
from twinlake.releases.report import write_report
from twinlake.releases.retire import Retired, retire
from twinlake.server.job_kinds import JobKind, Name, Params


class PlanParams(Params):
    definitions: dict[str, dict[str, Any]] | None = Field(default=None, min_length=1)
    git_commit: str | None = Field(default=None, min_length=1, max_length=64)
    tables: list[Name] | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _of_definitions(self) -> Self:
        if self.git_commit is not None and self.definitions is None:
            raise ValueError(
                "git_commit is that of `definitions`; without them the lake server tells its own"
            )
        return self


class BuildParams(Params):
    plan: Name


class DiffParams(Params):
    table: Name
    blue: Name | None = None
    green: Name | None = None
    plan: Name | None = None


class GateParams(Params):
    plan: Name


class PromoteParams(Params):
    plan: Name
    approved_by: str = Field(min_length=1, max_length=200)


class RetireParams(Params):
    keep: int = Field(default=KEPT_RELEASES, ge=1)


class RollbackParams(Params):
    approved_by: str = Field(min_length=1, max_length=200)
    to: int | None = Field(default=None, ge=1)
    reason: str | None = Field(default=None, min_length=1, max_length=500)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan, with the lines in which a person reads it."""

    plan: Plan

    def to_json(self) -> dict[str, Any]:
        return {**self.plan.to_json(), "lines": describe(self.plan)}


@dataclass(frozen=True, kw_only=True)
class Reported:
    """A comparison or a gate, with the page that shows it where there is one."""

    found: Comparison | Gate
    report: str | None = None

    def to_json(self) -> dict[str, Any]:
        return {**self.found.to_json(), **({"report": self.report} if self.report else {})}


def do_plan(lake: OpenLake, params: PlanParams, run: Run) -> Planned:
    """What making these definitions live would change; unless given, jobs/tables beside the lake server.

    With `tables`, of these and of what reads them alone.
    """
    if params.definitions is not None:
        return Planned(plan=propose(lake, params.definitions, params.git_commit, run, params.tables))
    run.say("reading jobs/tables")
    settings = lake.settings
    definitions = written(settings.project, settings.examples)
    return Planned(plan=propose(lake, definitions, commit_of(settings.project), run, params.tables))


def do_build(lake: OpenLake, params: BuildParams, run: Run) -> Built | Failed:
    """Make every green version that is not there yet, bring it to its logs' ends and certify it there."""
    return build(lake, lake.plans.load(params.plan), run)


def do_diff(lake: OpenLake, params: DiffParams, run: Run) -> Reported:
    """Blue (the live version unless named) against green (the newest living one unless named)."""
    plan = None if params.plan is None else lake.plans.load(params.plan)
    found = compare(lake, *_sides(lake, params), run)
    if plan is None:
        return Reported(found=found)
    lake.plans.save_diff(plan.id, params.table, found.to_json())
    return Reported(found=found, report=str(write_report(lake, plan)))


def do_gate(lake: OpenLake, params: GateParams, run: Run) -> Reported:
    """Ask everything that must hold; the answer, passed or not, is the result."""
    plan = lake.plans.load(params.plan)
    plan.refuse_outdated()
    asked = gate.ask(lake, plan, run)
    return Reported(found=asked, report=str(write_report(lake, plan)))


def do_promote(lake: OpenLake, params: PromoteParams, run: Run) -> Switched | Failed:
    """Make a plan's green versions live by one commit."""
    return promote(lake, lake.plans.load(params.plan), params.approved_by, run)


def do_rollback(lake: OpenLake, params: RollbackParams, run: Run) -> Switched:
    """Make an earlier release live again by one commit; plans leave out what it takes back."""
    return rollback(lake, params.to, params.approved_by, run, params.reason)


def do_retire(lake: OpenLake, params: RetireParams, run: Run) -> Retired:
    """Stop maintaining what none of the newest releases uses."""
    return retire(lake, params.keep, run)


def _sides(lake: OpenLake, params: DiffParams) -> tuple[Version, Version]:
    blue = params.blue or lake.live_version(params.table)
    if blue is None:
        raise NotFoundError(f"table {params.table} has no live version to compare with", "it is new",
                            "name one with --blue")  # fmt: skip
    newest = lake.versions.newest(params.table)
    green = params.green or (newest.name if newest else blue)
    return lake.versions.get(params.table, blue), lake.versions.get(params.table, green)


KINDS = {
    "plan": JobKind(params=PlanParams, handler=do_plan),
    "build": JobKind(params=BuildParams, handler=do_build),
    "diff": JobKind(params=DiffParams, handler=do_diff),
    "gate": JobKind(params=GateParams, handler=do_gate),
    "promote": JobKind(params=PromoteParams, handler=do_promote, urgent=True),
    "rollback": JobKind(params=RollbackParams, handler=do_rollback, urgent=True),
    "retire": JobKind(params=RetireParams, handler=do_retire),
}
