"""`twinlake rebuild`, `verify`, `expire` and `maintain`: ask the lake server and follow the job."""

from __future__ import annotations

from typing import Any

import typer

from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import AS_JSON, KEY, follow, lake_client
from twinlake.cli.output import print_json, say
from twinlake.server import outcomes
from twinlake.server.job_models import ExpireParams, MaintainParams, RebuildParams, VerifyParams

SHOWN = 10


def register(app: typer.Typer) -> None:
    """Adds the commands of the batch layer."""
    app.command("rebuild")(rebuild_command)
    app.command("verify")(verify_command)
    app.command("expire")(expire_command)
    app.command("maintain")(maintain_command)


@asking(RebuildParams, arguments=("table",))
def rebuild_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    _certify("rebuild", asked, key, as_json)


@asking(VerifyParams, arguments=("table",), without=("from", "to"))
def verify_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    _certify("verify", asked, key, as_json)


@asking(ExpireParams)
def expire_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    client = lake_client()
    job = follow(client, client.submit("expire", asked, key))
    result = job.succeeded()
    if as_json:
        print_json({"job": job.id, "state": job.state, **result})
        return
    for line in outcomes.expired(result):
        say(line)


@asking(MaintainParams, arguments=("table",))
def maintain_command(*, asked: Asked, key: KEY = None, as_json: AS_JSON = False) -> None:
    client = lake_client()
    job = follow(client, client.submit("maintain", asked, key))
    result = job.succeeded()
    if as_json:
        print_json({"job": job.id, "state": job.state, **result})
        return
    commits = f"{result['commit_files_deleted']:,} old commit files"
    say(f"{commits} were deleted, and the data files that nobody needs")
    for topic in result["logs_compacted"]:
        say(f"compacted the log of {topic}")
    for version in result["versions_deleted"]:
        say(f"deleted the files of {version}")


def _certify(kind: str, params: dict[str, Any], key: str | None, as_json: bool) -> None:
    client = lake_client()
    job = follow(client, client.submit(kind, params, key))
    result = job.result or job.succeeded()
    is_empty = outcomes.is_empty(params, result)
    if as_json:
        print_json({"job": job.id, "state": job.state, **result})
    elif is_empty:
        say(outcomes.nothing(kind, result))
    else:
        _show(kind, result, is_live="version" not in params)
    if not result["equal"] or result["disputed"] or is_empty:
        raise typer.Exit(1)


def _show(kind: str, result: dict[str, Any], is_live: bool) -> None:
    if text := outcomes.pending(result):
        say(text)
    before, verdict, after = outcomes.certified(result)
    say(f"{before} ", (verdict, "green" if result["equal"] else "bold red"), f" {after}")
    if proof := result.get("proof"):
        from twinlake.lake.catalog.disputed import lines
        from twinlake.lake.catalog.witnessed import Witnessed

        say(f"  {proof}")
        witness = Witnessed.from_json(result["certificate"]["witness"])
        for line in (*result["clocks"], *(lines(witness.answer, is_live=is_live) if witness else ())):
            say(f"    {line}")
    for topic in result.get("topics", ()):
        say(f"  {topic}")
    for title, found in (("differs", result["differences"]), ("was repaired", result["repaired"])):
        for one in found[:SHOWN]:
            if one["cause"] == "raises":
                say(f"  raises: {one['why']}")
                continue
            key = ", ".join(f"{column}={value}" for column, value in one["key"].items())
            say(f"  {title}: {key} ({one['cause']}: {one['why']})")
            for side in ("speed", "batch"):
                say(f"    {side} {one[side]}")
        if len(found) > SHOWN:
            say(f"  and {len(found) - SHOWN} more, see --json")
    if kind == "rebuild" and not result["equal"] and not result["replaced"]:
        say("nothing was replaced; add --repair to replace what speed wrote by what batch computed")
