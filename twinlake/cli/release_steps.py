"""The steps of a release, which its commands take one by one and `twinlake release` one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinlake.base.errors import DefinitionError
from twinlake.base.job import batches_text
from twinlake.base.version import commit_of
from twinlake.cli.job_options import Asked
from twinlake.cli.jobs import follow, lake_client
from twinlake.cli.options import names_in
from twinlake.cli.output import Words, print_json, say, show_error, show_rows, tell
from twinlake.config.settings import Settings
from twinlake.server import outcomes

SHOWN = 5
SIDES = ("blue", "green")


def run(settings: Settings, kind: str, params: Mapping[str, Any], key: str | None) -> dict[str, Any]:
    """The result of a job, its progress shown meanwhile."""
    client = lake_client(settings)
    return follow(client, client.submit(kind, params, key)).succeeded()


def planned(
    settings: Settings, asked: Asked, tables: str | None, remove: str | None, key: str | None
) -> dict[str, Any]:
    """The plan of what the project's definitions say now; DefinitionError with its file and line."""
    from twinlake.definitions.loader import load

    given = {"tables": names_in("--table", tables), "remove": names_in("--remove", remove)}
    loaded = load(*settings.sources)
    if loaded.wrong and not loaded.tables:
        raise loaded.wrong[0]
    known = {table.name: table for table in loaded.tables}
    params = {
        **asked, **{name: names for name, names in given.items() if names},
        "definitions": {name: one.to_json() for name, one in known.items()},
        "git_commit": commit_of(settings.project.root),
    }  # fmt: skip
    for error in loaded.wrong:
        show_error(error)
        tell("the tables of this file are not planned: those that are live stay as they are")
    try:
        return run(settings, "plan", params, key)
    except DefinitionError as error:
        wrong = known.get(error.facts.get("table", ""))
        if wrong is None:
            raise
        raise wrong.error(error.facts["why"], error.remedy) from error  # the lake server knows no file


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
        blue, green = change["blue"], greens[name]
        params = {**asked, "table": name, "blue": blue, "green": green, "plan": plan}
        found.append(run(settings, "diff", params, f"{key}/{name}" if key else None))
    return found


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


def show_build(result: Mapping[str, Any]) -> None:
    for table, version in result["greens"].items():
        how = "built" if table in result["built"] else "was there already"
        certificate = result["certificates"].get(table)
        equal = f", certified over {certificate['rows_compared']:,} rows" if certificate else ""
        say(f"{table} {version} {how}{equal}")
    if not result["greens"]:
        say("nothing to build")


def show_diffs(settings: Settings, plan: str, found: Sequence[Mapping[str, Any]]) -> None:
    for one in found:
        _show_diff(one)
    if not found:
        say("nothing to compare: no table with a live version changes")
    elif settings.services().sql_url:
        say(f"report: {settings.services().sql_url}/reports/{plan}")


def show_gate(gate: Mapping[str, Any]) -> None:
    for check in gate["checks"]:
        mark = ("ok    ", "green") if check["passed"] else ("FAILED", "bold red")
        name = " ".join(part for part in (check["table"], check["name"]) if part)
        say(mark, f" {name}: {check['detail']}")
        for line in check.get("rows", ()):
            say(f"         {line}")


def _show_diff(diff: Mapping[str, Any]) -> None:
    place = batches_text(diff["position"])
    verdict: Words = ("equal", "green") if diff["equal"] else "different"
    blue, green = diff["blue"]["version"], diff["green"]["version"]
    say((diff["table"], "bold"), f": blue {blue} and green {green} at {place}: ", verdict)
    say(
        f"  {diff['common'] - diff['changed']:,} rows the same, {diff['changed']:,} changed, "
        f"{diff['only_blue']:,} only in blue, {diff['only_green']:,} only in green"
    )
    for side in SIDES:
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
    show_samples(diff["samples"])


def show_samples(samples: Sequence[Mapping[str, Any]], sides: tuple[str, str] = SIDES) -> None:
    """The first of each sort, a line each; `sides` are what a person calls them."""
    sorts = {"changed": "changed", "only_blue": f"only {sides[0]}", "only_green": f"only {sides[1]}"}
    for kind, words in sorts.items():
        for sample in [one for one in samples if one["kind"] == kind][:SHOWN]:
            key = ", ".join(f"{name}={value}" for name, value in sample["key"].items())
            text = f"{words}: {key}"
            if kind == "changed":
                text += "; " + ", ".join(
                    f"{name} {sample['blue'][name]} -> {sample['green'][name]}" for name in sample["columns"]
                )
            say(f"  {text}")
