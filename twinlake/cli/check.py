"""`twinlake check`: definitions, contracts and schemas, and what they mean for the lake. No service runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

import typer

from twinlake.base.errors import OtherServerError, TwinlakeError, UnreachableError
from twinlake.base.files import shown_path
from twinlake.base.interrupt import leave_at_once, restored
from twinlake.cli.output import load_settings, print_json, tell
from twinlake.config.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


KEPT = ".twinlake_cache/checked.json"


def register(app: typer.Typer) -> None:
    """Adds `check`."""
    app.command("check")(run)


def run(
    full: Annotated[
        bool,
        typer.Option("--full", help="By Spark, too: that of a running lake server, or one that is started."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Load every definition, contract and schema; refuse what is not row-local, and what would strand tables
    of the lake, where there is one. Starts no service, and without --full no Spark: the last line names what
    only that can say.

    What Spark found of a definition is kept until its text, what it rests on or Twinlake changes.
    """
    given = load_settings()
    report = (by_server(given) or by_spark(given)) if full else without_spark(given)
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not report["ok"]:
        raise typer.Exit(1)


def without_spark(given: Settings) -> dict[str, Any]:
    """The report, as JSON has it, of what can be said at once."""
    from twinlake.releases.check import check
    from twinlake.releases.checked import Checked

    return check(given.sources, checked=Checked(given.project.root / KEPT), lake=given.lake).to_json()


@restored()
def by_spark(given: Settings) -> dict[str, Any]:
    """The report with all that can be said; Spark is started where it has something to say."""
    from twinlake.releases.check import check
    from twinlake.releases.checked import Checked

    with TemporaryDirectory(prefix="twinlake-check-") as scratch:
        # a scratch folder of its own: a check must not touch the state of what runs
        settings = replace(given, home=Path(scratch))
        checked = Checked(given.project.root / KEPT)
        return check(given.sources, lambda: _spark(settings), checked, given.lake).to_json()


def by_server(given: Settings) -> dict[str, Any] | None:
    """The same by a lake server that runs this code for this project; None where none does."""
    from twinlake.cli.jobs import follow
    from twinlake.definitions.premises import code
    from twinlake.server.client import LakeClient

    roots = [str(project.root) for project in given.sources]
    try:
        client = LakeClient.of(given.services(), read_again=given.services)
        asked = client.submit("check", {"code": code(), "roots": roots})
    except UnreachableError:
        return None
    except TwinlakeError as error:  # one of an earlier version knows no such job
        tell(f"not asked of the lake server: {error.what}")
        return None
    job = follow(client, asked)
    if job.error is not None and job.error.get("error") == OtherServerError.__name__:
        tell(f"not asked of the lake server: {job.error['what']}")
        return None
    found: dict[str, Any] = job.succeeded()
    return found


def _show(report: Mapping[str, Any]) -> None:
    for topic in report["topics"]:
        print(f"topic {topic['name']}: schema {topic['schema']}, contract {topic['contract']}")
    for table in report["tables"]:
        read = ", ".join([*table["inputs"], *table["reads"]])
        known = table["fingerprint"] or ""
        print(f"table {table['name']}: {table['kind']} of {read}" + (f", {known[:12]}" if known else ""))
    for warning in report["warnings"]:
        print(f"warning: {_shown(warning)}")
    for problem in report["problems"]:
        print(_shown(problem))
    many = len(report["problems"])
    if report["ok"]:
        is_whole = not report["only_full"]
        tell(("all is well", "green") if is_whole else ("nothing is wrong as far as is known", "yellow"))
    else:
        tell((f"{many} to repair", "red"))
    if rest := left(report):
        tell("only `twinlake check --full` can say ", "; ".join(rest))
    if report["ok"]:
        tell("next: twinlake test, then twinlake plan")


def left(report: Mapping[str, Any]) -> list[str]:
    """What a check without Spark has not said, each as the rest of a sentence."""
    found = [one["what"] for one in report["only_full"]]
    if report["unwarned"]:
        found.append(f"which expressions raise for some record ({', '.join(report['unwarned'])})")
    return found


@restored()
def refuse_stranding(given: Settings) -> None:
    """ContractError for files that would strand tables of the lake, before it works with them."""
    from twinlake.releases.stranded import load_all, stranded

    topics = load_all(given.sources).topics  # the lake server goes on without one whose files are wrong
    with TemporaryDirectory(prefix="twinlake-check-") as scratch:
        for one in stranded(given.lake, topics, lambda: _spark(replace(given, home=Path(scratch)))):
            raise one.refused


def _shown(found: Mapping[str, Any]) -> str:
    """Begins with `file:line:column:`, where these are known."""
    what = str(found["what"])
    if found["file"] and found["line"]:
        name = shown_path(found["file"])
        names = f"({re.escape(name)}|{re.escape(found['file'])})"
        what = re.sub(rf"^{names}(:\d+)?:", lambda _: f"{name}:{found['line']}:{found['column']}:", what)
    return what + (f" ({found['remedy']})" if found["remedy"] else "")


def _spark(settings: Settings) -> SparkSession:
    """A session whose own words go to a file: what they mean to a user, the report says."""
    from twinlake.setup.ensure import ensure_jars
    from twinlake.spark.session import session, stderr_to

    ensure_jars(settings, os.environ, tell)
    said = settings.home / "spark.log"
    leave_at_once()
    try:
        with stderr_to(said):
            return session(settings, name="twinlake-check", memory="1g", cores=1, plans_only=True)
    except Exception:
        for line in said.read_text(errors="replace").splitlines():
            tell(line)
        raise
