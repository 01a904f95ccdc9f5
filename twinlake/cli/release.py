"""`twinlake release`: from the project's definitions to what readers see, with one question."""

from __future__ import annotations

from typing import Annotated

import typer

from twinlake.cli import release_steps as steps
from twinlake.cli.job_options import Asked, asking
from twinlake.cli.jobs import named
from twinlake.cli.options import YES
from twinlake.cli.output import load_settings, refuse_unanswered, say, tell
from twinlake.cli.releases import APPROVER
from twinlake.server.release_models import PlanParams


def register(app: typer.Typer) -> None:
    """Adds the command."""
    app.command("release")(release_command)


@asking(PlanParams, without=("definitions", "git_commit"))
def release_command(
    *,
    asked: Asked,
    tables: Annotated[str | None, typer.Option("--table", metavar="A,B", help="{about}")] = None,
    remove: Annotated[str | None, typer.Option(metavar="A,B", help="{about}")] = None,
    approved_by: APPROVER = None,
    reason: Annotated[str | None, typer.Option(help="why; `twinlake releases` shows it")] = None,
    yes: YES = False,
) -> None:
    """Plan, build, compare and ask the gate; then make it live, if you say so.

    The same as `twinlake plan`, `build`, `diff`, `gate` and `promote` one after the other. Until the last one
    nothing changes for readers. Exit code 1 if the gate refuses, or you say no.
    """
    if not yes:
        refuse_unanswered(
            "release asks before it changes what readers see",
            "add --yes, or take the steps one by one: `twinlake plan`",
        )
    settings, approver = load_settings(), named(approved_by, "--approved-by")
    plan = steps.planned(settings, asked, tables, remove, None)
    for line in plan["lines"]:
        say(line)
    if plan["empty"]:
        return
    of_plan = {"plan": plan["id"]}
    built = steps.run(settings, "build", of_plan, None)
    steps.show_build(built)
    found = steps.compared(settings, plan["id"], steps.changed(plan), built["greens"], {}, None)
    steps.show_diffs(settings, plan["id"], found)
    gate = steps.run(settings, "gate", of_plan, None)
    steps.show_gate(gate)
    if not gate["passed"]:
        tell(f"nothing has changed for readers; once it is corrected: twinlake gate {plan['id']}")
        raise typer.Exit(1)
    if not yes and not typer.confirm(f"Make plan {plan['id']} live?"):
        tell("nothing has changed for readers")
        tell(f"next: twinlake promote {plan['id']}, or twinlake reject {plan['id']}")
        raise typer.Exit(1)
    steps.switch(settings, "promote", {**of_plan, "approved_by": approver}, None, False, reason)
