"""`twinlake plan`, `build`, `diff`, `gate`, `promote`, `reject`, `rollback`, `retire`: a command a step."""

from __future__ import annotations

from typing import Annotated

import typer

from twinlake.base.errors import NotFoundError
from twinlake.cli import release_steps as steps
from twinlake.cli import sampled_diff
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, KEY, named
from twinlake.cli.local_lake import refuse_unreadable
from twinlake.cli.options import refuse_beside, whole
from twinlake.cli.output import load_settings, print_json, say, show_rows, tell
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog.plans import Plans
from twinlake.server.release_models import (
    BuildParams,
    DiffParams,
    GateParams,
    PlanParams,
    PromoteParams,
    RejectParams,
    RetireParams,
    RollbackParams,
    SampleParams,
)

PLAN = Annotated[str | None, typer.Argument(help="the plan's id; the newest plan unless given")]
APPROVER = Annotated[
    str | None, typer.Option("--approved-by", help="who approves; the user of this shell unless given")
]


def register(app: typer.Typer) -> None:
    """Adds the commands of a release, in the order in which they are used."""
    app.command("plan")(plan_command)
    app.command("build")(build_command)
    app.command("diff")(diff_command)
    app.command("gate")(gate_command)
    app.command("promote")(promote_command)
    app.command("reject")(reject_command)
    app.command("rollback")(rollback_command)
    app.command("retire")(retire_command)
    app.command("releases")(releases_command)


@asking(PlanParams, without=("definitions", "git_commit"))
def plan_command(
    *,
    asked: Asked,
    tables: Annotated[str | None, typer.Option("--table", metavar="A,B", help="{about}")] = None,
    remove: Annotated[str | None, typer.Option(metavar="A,B", help="{about}")] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Say what the project's definitions would change against the live release, and its cost.

    A live table whose definition is not found stays as it is, unless --remove names it. What was rolled back
    is left out until its definition changes, or it is named with --table.
    """
    result = steps.planned(load_settings(), asked, tables, remove, key)
    if as_json:
        print_json(result)
        return
    for line in result["lines"]:
        say(line)
    if not result["empty"]:
        tell(f"next: twinlake build {result['id']}")


@asking(BuildParams)
def build_command(*, plan: PLAN = None, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    settings = load_settings()
    result = steps.run(settings, "build", {"plan": _plan(settings, plan), **asked}, key)
    if as_json:
        print_json(result)
        return
    steps.show_build(result)
    tell(f"next: twinlake diff {result['plan']}")


@asking(DiffParams, without=("blue", "green", "definitions"), sampled=SampleParams)
def diff_command(
    *,
    plan: PLAN = None,
    table: Annotated[str | None, typer.Option(help="only this table of the plan")] = None,
    asked: Asked,
    sample: sampled_diff.SAMPLE = None,
    sampled: Asked,
    records_from: sampled_diff.RECORDS_FROM = None,
    against: sampled_diff.AGAINST = None,
    form: sampled_diff.FORMAT = sampled_diff.TEXT,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Compare the plan's green versions with the live ones at one position; exit code 1 if they differ.

    Green versions that are not there yet are built first, as `twinlake build` does.

    With --sample nothing is planned or built: the definitions as they are written now are compared with the
    live versions over the newest records, within seconds. With --records-from neither a lake nor Spark runs.
    Exit code 3: what a table shows is not known, as where the second engine does not evaluate it.
    """
    settings = load_settings()
    if sample is not None:
        refuse_beside("--sample", {f"the plan {plan!r}": plan is not None, "--table": table is not None})
        return sampled_diff.run(
            settings, sample, {**asked, **sampled}, key, records_from, against, form, as_json
        )
    sampled_diff.refuse_without_sample({
        **{f"--{name}": value for name, value in sampled.items()}, "--records-from": records_from,
        "--against": against, "--format": form,
    })  # fmt: skip
    formats.refuse_other(settings.lake)
    made = Plans(settings.lake).load(_plan(settings, plan)).to_json()
    changes = steps.changed(made, table)
    if table is not None and not changes:
        raise NotFoundError(f"plan {made['id']} does not change table {table!r}",
                            "only tables with a live version can be", "see `twinlake plan`")  # fmt: skip
    greens = steps.run(settings, "build", {"plan": made["id"]}, None)["greens"] if changes else {}
    found = steps.compared(settings, made["id"], changes, greens, asked, key)
    equal = all(one["equal"] for one in found)
    if as_json:
        print_json({"plan": made["id"], "equal": equal, "diffs": found})
    else:
        steps.show_diffs(settings, made["id"], found)
        tell(f"next: twinlake gate {made['id']}")
    if not equal:
        raise typer.Exit(1)


@asking(GateParams, without=("reasons_by",))
def gate_command(
    *,
    plan: PLAN = None,
    asked: Asked,
    approved_by: Annotated[
        str | None,
        typer.Option(
            "--approved-by",
            help="who gives the reasons of --unwitnessed; the user of this shell unless given",
        ),
    ] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Ask what must hold before the plan may go live; exit code 1 if something does not."""
    settings = load_settings()
    if asked.get("unwitnessed"):
        asked["reasons_by"] = named(approved_by, "--approved-by")
    result = steps.run(settings, "gate", {"plan": _plan(settings, plan), **asked}, key)
    if as_json:
        print_json(result)
    else:
        steps.show_gate(result)
        if result["passed"]:
            tell(f"next: twinlake promote {result['plan']}")
    if not result["passed"]:
        raise typer.Exit(1)


@asking(PromoteParams)
def promote_command(
    *,
    plan: PLAN = None,
    asked: Asked,
    approved_by: APPROVER = None,
    reason: Annotated[str | None, typer.Option(help="why; `twinlake releases` shows it")] = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    settings = load_settings()
    asked |= {"plan": _plan(settings, plan), "approved_by": named(approved_by, "--approved-by")}
    steps.switch(settings, "promote", asked, key, as_json, reason)


@asking(RejectParams)
def reject_command(
    *,
    plan: PLAN = None,
    asked: Asked,
    rejected_by: Annotated[
        str | None, typer.Option("--rejected-by", help="{about}; the user of this shell unless given")
    ] = None,
    as_json: AS_JSON = False,
) -> None:
    settings = load_settings()
    asked |= {"plan": _plan(settings, plan), "rejected_by": named(rejected_by, "--rejected-by")}
    result = steps.run(settings, "reject", asked, None)
    if as_json:
        print_json(result)
    else:
        say(f"plan {result['plan']} is rejected; nothing has changed for readers")


@asking(RollbackParams)
def rollback_command(
    *, asked: Asked, approved_by: APPROVER = None, key: KEY = None, as_json: AS_JSON = False
) -> None:
    asked["approved_by"] = named(approved_by, "--approved-by")
    if not asked.get("reason"):  # an empty one is none
        asked.pop("reason", None)
    steps.switch(load_settings(), "rollback", asked, key, as_json)


@asking(RetireParams)
def retire_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    result = steps.run(load_settings(), "retire", asked, key)
    if as_json:
        print_json(result)
        return
    for version in result["retired"]:
        say(f"retired {version}")
    for version in result["busy"]:
        say(("left", "yellow"), f" {version}: it is being rebuilt, or merged")
    kept = ", ".join(map(str, result["releases"])) or "none yet"
    counts = f"{len(result['retired'])} versions retired, {len(result['living'])} maintained"
    say(f"{counts}; releases kept: {kept}")


def releases_command(
    limit: Annotated[
        int, typer.Option(parser=whole(1), metavar="NUMBER", help="how many, newest first")
    ] = 20,
    as_json: AS_JSON = False,
) -> None:
    """Every release so far, newest first; the first line is live."""
    from twinlake.lake.catalog.release_log import releases

    settings = load_settings()
    refuse_unreadable(settings)
    found = releases(settings.lake)[: -limit - 1 : -1]
    if as_json:
        print_json([release.to_json() for release in found])
        return
    rows = [
        (
            str(one.number), f"{one.kind} of {one.restores}" if one.restores else one.kind,
            one.created_at[:19], one.approved_by, one.plan or "",
            one.reason or "", ", ".join(f"{table} {version}" for table, version in one.tables.items()),
        )
        for one in found
    ]  # fmt: skip
    header = ("release", "kind", "created", "approved by", "plan", "reason", "tables")
    show_rows(header, rows)


def _plan(settings: Settings, given: str | None) -> str:
    if given is not None:
        return given
    refuse_unreadable(settings)
    newest = Plans(settings.lake).newest()
    if newest is None:
        raise NotFoundError("there is no plan yet", "", "make one with `twinlake plan`")
    return newest.id
