"""`twinlake plan`, `build`, `diff`, `gate`, `promote`, `reject`, `rollback`, `retire`: a command a step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer

from twinlake.base.errors import DefinitionError, NotFoundError
from twinlake.base.job import batches_text
from twinlake.base.version import commit_of
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, KEY, follow, lake_client, named
from twinlake.cli.local_lake import refuse_unreadable
from twinlake.cli.numbers import whole
from twinlake.cli.output import Words, load_settings, print_json, say, show_error, show_rows, tell
from twinlake.config.settings import Settings
from twinlake.lake import formats
from twinlake.lake.catalog.plans import Plans
from twinlake.server import outcomes
from twinlake.server.job_models import (
    BuildParams,
    DiffParams,
    GateParams,
    PlanParams,
    PromoteParams,
    RejectParams,
    RetireParams,
    RollbackParams,
)

PLAN = Annotated[str | None, typer.Argument(help="the plan's id; the newest plan unless given")]
APPROVER = Annotated[
    str | None, typer.Option("--approved-by", help="{about}; the user of this shell unless given")
]
SHOWN = 5


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
    result = planned(load_settings(), asked, tables, remove, key)
    if as_json:
        print_json(result)
        return
    for line in result["lines"]:
        say(line)
    if not result["empty"]:
        tell(f"next: twinlake build {result['id']}")


def planned(
    settings: Settings, asked: Asked, tables: str | None, remove: str | None, key: str | None
) -> dict[str, Any]:
    """The plan of what the project's definitions say now; DefinitionError with its file and line."""
    from twinlake.definitions.loader import load

    loaded = load(*settings.sources)
    if loaded.wrong and not loaded.tables:
        raise loaded.wrong[0]
    known = {table.name: table for table in loaded.tables}
    asked["definitions"] = {name: one.to_json() for name, one in known.items()}
    asked["git_commit"] = commit_of(settings.project.root)
    if tables is not None:
        asked["tables"] = names_in(tables)
    if remove is not None:
        asked["remove"] = names_in(remove)
    for error in loaded.wrong:
        show_error(error)
        tell("the tables of this file are not planned: those that are live stay as they are")
    try:
        return run(settings, "plan", asked, key)
    except DefinitionError as error:
        wrong = known.get(error.facts.get("table", ""))
        if wrong is None:
            raise
        raise wrong.error(error.facts["why"], error.remedy) from error  # the lake server knows no file


def names_in(text: str) -> list[str]:
    """The names in an option like `A,B`."""
    return [name.strip() for name in text.split(",")]


@asking(BuildParams)
def build_command(*, plan: PLAN = None, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    settings = load_settings()
    result = run(settings, "build", {"plan": _plan(settings, plan), **asked}, key)
    if as_json:
        print_json(result)
        return
    show_build(result)
    tell(f"next: twinlake diff {result['plan']}")


def show_build(result: Mapping[str, Any]) -> None:
    for table, version in result["greens"].items():
        how = "built" if table in result["built"] else "was there already"
        certificate = result["certificates"].get(table)
        equal = f", certified over {certificate['rows_compared']:,} rows" if certificate else ""
        say(f"{table} {version} {how}{equal}")
    if not result["greens"]:
        say("nothing to build")


@asking(DiffParams, without=("blue", "green"))
def diff_command(
    *,
    plan: PLAN = None,
    table: Annotated[str | None, typer.Option(help="only this table of the plan")] = None,
    asked: Asked,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Compare the plan's green versions with the live ones at one position; exit code 1 if they differ.

    Green versions that are not there yet are built first, as `twinlake build` does.
    """
    settings = load_settings()
    formats.refuse_other(settings.lake)
    made = Plans(settings.lake).load(_plan(settings, plan)).to_json()
    changes = changed(made, table)
    if table is not None and not changes:
        raise NotFoundError(f"plan {made['id']} does not change table {table!r}",
                            "only tables with a live version can be", "see `twinlake plan`")  # fmt: skip
    greens = run(settings, "build", {"plan": made["id"]}, None)["greens"] if changes else {}
    found = compared(settings, made["id"], changes, greens, asked, key)
    equal = all(one["equal"] for one in found)
    if as_json:
        print_json({"plan": made["id"], "equal": equal, "diffs": found})
    else:
        show_diffs(settings, made["id"], found)
        tell(f"next: twinlake gate {made['id']}")
    if not equal:
        raise typer.Exit(1)


def changed(plan: Mapping[str, Any], table: str | None = None) -> list[Mapping[str, Any]]:
    """The plan's changes of tables that have a live version; of this table alone, if it is given."""
    return [
        change
        for change in plan["changes"]
        if change["action"] == "changed" and table in (None, change["table"])
    ]


def compared(
    settings: Settings, plan: str, changes: Sequence[Mapping[str, Any]], greens: Mapping[str, str],
    asked: Asked, key: str | None,
) -> list[dict[str, Any]]:  # fmt: skip
    """By change how its green version, which is built, differs from blue."""
    found = []
    for change in changes:
        name = change["table"]
        asked |= {"table": name, "blue": change["blue"], "green": greens[name], "plan": plan}
        found.append(run(settings, "diff", asked, f"{key}/{name}" if key else None))
    return found


def show_diffs(settings: Settings, plan: str, found: Sequence[Mapping[str, Any]]) -> None:
    for one in found:
        _show_diff(one)
    if not found:
        say("nothing to compare: no table with a live version changes")
    elif settings.services().sql_url:
        say(f"report: {settings.services().sql_url}/reports/{plan}")


@asking(GateParams, without=("reasons_by",))
def gate_command(
    *,
    plan: PLAN = None,
    asked: Asked,
    approved_by: APPROVER = None,
    key: KEY = None,
    as_json: AS_JSON = False,
) -> None:
    """Ask what must hold before the plan may go live; exit code 1 if something does not."""
    settings = load_settings()
    if asked.get("unwitnessed"):
        asked["reasons_by"] = named(approved_by, "--approved-by")
    result = run(settings, "gate", {"plan": _plan(settings, plan), **asked}, key)
    if as_json:
        print_json(result)
    else:
        show_gate(result)
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
    switch(settings, "promote", asked, key, as_json, reason)


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
    result = run(settings, "reject", asked, None)
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
    switch(load_settings(), "rollback", asked, key, as_json)


@asking(RetireParams)
def retire_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    result = run(load_settings(), "retire", asked, key)
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


def switch(
    settings: Settings, kind: str, asked: Mapping[str, Any], key: str | None, as_json: bool,
    reason: str | None = None,
) -> None:  # fmt: skip
    client = lake_client(settings, reason)
    job = follow(client, client.submit(kind, asked, key))
    refused = (job.result or {}).get("gate")
    if refused and not as_json:
        show_gate(refused)
    result = job.succeeded()
    if as_json:
        print_json(result)
        return
    say(outcomes.released(result))
    if not result["changed"]:
        return
    for table, version in result["tables"].items():
        say(f"  {table} {version} at {batches_text(result['positions'].get(table, {}))}")
    if result["followed"]:
        say(f"the SQL server followed in {result['follow_seconds']} s")
    else:
        say((result["follow_problem"], "yellow"))
    if kind == "promote":
        tell("next: twinlake tables; twinlake rollback goes back")


def run(settings: Settings, kind: str, params: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """The result of a job, its progress shown meanwhile."""
    client = lake_client(settings)
    return follow(client, client.submit(kind, params, key)).succeeded()


def _plan(settings: Settings, given: str | None) -> str:
    if given is not None:
        return given
    refuse_unreadable(settings)
    newest = Plans(settings.lake).newest()
    if newest is None:
        raise NotFoundError("there is no plan yet", "", "make one with `twinlake plan`")
    return newest.id


def _show_diff(diff: Mapping[str, Any]) -> None:
    place = batches_text(diff["position"])
    verdict: Words = ("equal", "green") if diff["equal"] else "different"
    blue, green = diff["blue"]["version"], diff["green"]["version"]
    say((diff["table"], "bold"), f": blue {blue} and green {green} at {place}: ", verdict)
    say(
        f"  {diff['common'] - diff['changed']:,} rows the same, {diff['changed']:,} changed, "
        f"{diff['only_blue']:,} only in blue, {diff['only_green']:,} only in green"
    )
    for side in ("blue", "green"):
        if diff[f"columns_only_{side}"]:
            say(f"  columns only in {side}: {', '.join(diff[f'columns_only_{side}'])}")
    if diff.get("blue_raises"):
        say((f"  blue cannot be read, and counts as NULL where it raises: {diff['blue_raises']}", "yellow"))
    rows = []
    for column in diff["columns"]:
        if column["changed"]:
            totals = (column["blue_total"] or "", column["green_total"] or "")
            rows.append((column["name"], f"{column['changed']:,}", *totals))
    if rows:
        show_rows(("column", "rows changed", "total in blue", "total in green"), rows)
    _show_samples(diff["samples"])


def _show_samples(samples: Sequence[Mapping[str, Any]]) -> None:
    for kind in ("changed", "only_blue", "only_green"):
        for sample in [one for one in samples if one["kind"] == kind][:SHOWN]:
            key = ", ".join(f"{name}={value}" for name, value in sample["key"].items())
            text = f"{kind.replace('_', ' ')}: {key}"
            if kind == "changed":
                text += "; " + ", ".join(
                    f"{name} {sample['blue'][name]} -> {sample['green'][name]}" for name in sample["columns"]
                )
            say(f"  {text}")


def show_gate(gate: Mapping[str, Any]) -> None:
    for check in gate["checks"]:
        mark = ("ok    ", "green") if check["passed"] else ("FAILED", "bold red")
        name = " ".join(part for part in (check["table"], check["name"]) if part)
        say(mark, f" {name}: {check['detail']}")
        for line in check.get("rows", ()):
            say(f"         {line}")
