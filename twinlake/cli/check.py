"""`twinlake check`: definitions, contracts and schemas, and what they mean for the lake. No service runs."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from twinlake.base.errors import TwinlakeError
from twinlake.cli.output import load_settings, print_json, tell
from twinlake.config.settings import Settings
from twinlake.releases.check import check
from twinlake.releases.checked import Checked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


KEPT = ".twinlake_cache/checked.json"


def register(app: typer.Typer) -> None:
    """Adds `check`."""
    app.command("check")(run)


def run(as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False) -> None:
    """Load every definition, contract and schema; refuse what is not row-local, and what would strand tables
    of the lake, where there is one. Starts no service.

    What it found of a definition is kept until its text, what it rests on or Twinlake changes.
    """
    with TemporaryDirectory(prefix="twinlake-check-") as scratch:
        # a scratch folder of its own: a check must not touch the state of what runs
        given = load_settings()
        settings = replace(given, home=Path(scratch))
        report = check(
            given.sources, lambda: _spark(settings), Checked(given.project.root / KEPT), given.lake
        )
    if as_json:
        print_json(report.to_json())
    else:
        for topic in report.topics:
            print(f"topic {topic['name']}: schema {topic['schema']}, contract {topic['contract']}")
        for table in report.tables:
            read = ", ".join([*table["inputs"], *table["reads"]])
            print(f"table {table['name']}: {table['kind']} of {read}, {table['fingerprint'][:12]}")
        for warning in report.warnings:
            print(f"warning: {_shown(warning)}")
        for problem in report.problems:
            print(_shown(problem))
        tell(("all is well", "green") if report.ok else (f"{len(report.problems)} to repair", "red"))
    if not report.ok:
        raise typer.Exit(1)


def refuse_stranding(given: Settings) -> None:
    """ContractError for files that would strand tables of the lake, before it works with them."""
    from twinlake.releases.stranded import load_all, stranded

    topics = load_all(given.sources).topics  # the lake server goes on without one whose files are wrong
    with TemporaryDirectory(prefix="twinlake-check-") as scratch:
        for one in stranded(given.lake, topics, lambda: _spark(replace(given, home=Path(scratch)))):
            raise one.refused


def _shown(found: TwinlakeError) -> str:
    return found.what + (f" ({found.remedy})" if found.remedy else "")


def _spark(settings: Settings) -> SparkSession:
    """A session whose own words go to a file: what they mean to a user, the report says."""
    from twinlake.setup.ensure import ensure_jars
    from twinlake.spark.session import session, stderr_to

    ensure_jars(settings, os.environ, tell)
    said = settings.home / "spark.log"
    try:
        with stderr_to(said):
            return session(settings, name="twinlake-check", memory="1g", cores=1, plans_only=True)
    except Exception:
        for line in said.read_text(errors="replace").splitlines():
            tell(line)
        raise
