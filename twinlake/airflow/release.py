"""The maker of the DAG `release`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context
from airflow.sdk.exceptions import AirflowSkipException

from twinlake.airflow.approval import ELSEWHERE, LONGEST_REASON, Approval, answered
from twinlake.airflow.assets import SERVED, announce
from twinlake.airflow.common import RELEASE_POOL, dag_of, limits
from twinlake.airflow.forms import form, given
from twinlake.airflow.jobs import log, report_of, run_job, triggered_by
from twinlake.airflow.task import ReportedTask, ShownFailure, lake_task
from twinlake.base.errors import visible
from twinlake.server.release_models import GateParams, PlanParams

MOST_RUNS = 5
"""One that waits for its approval stops no other; once another is live, promote refuses it."""
MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in "\\`*_{}[]()<>#+-.!|~"})


def as_list(lines: list[str]) -> str:
    """The lines as a Markdown list that shows their very characters; indented ones are items below."""
    marks = ["  - " if line.startswith(" ") else "- " for line in lines]
    texts = [visible(line.strip()).translate(MARKDOWN) for line in lines]
    return "\n".join(mark + text for mark, text in zip(marks, texts, strict=True))


def difference_lines(diffs: list[dict[str, Any]]) -> list[str]:
    """One line of counts per compared table. Values of records stay in the report, which escapes them."""
    lines = []
    for diff in diffs:
        rows = (
            f"{diff['common'] - diff['changed']:,} rows the same, {diff['changed']:,} changed, "
            f"{diff['only_blue']:,} only in blue, {diff['only_green']:,} only in green"
        )
        changed = ", ".join(
            f"{one['name']} ({one['changed']:,})" for one in diff["columns"] if one["changed"]
        )
        lines.append(f"{diff['table']}: {rows}{'; changed columns: ' + changed if changed else ''}")
        if diff.get("blue_raises"):
            lines.append(f"  blue cannot be read, and counts as NULL where it raises: {diff['blue_raises']}")
    return lines


def release() -> None:
    """DAG `release`: plan, build, compare, gate, approve, promote; a person approves in Airflow.

    A run that waits for its approval stops no other. Once another has gone live, its promote is refused.
    """

    @lake_task
    def plan() -> dict[str, Any]:
        """What changes, why, and what it will cost; nothing to change ends the run as skipped."""
        params = get_current_context()["params"]
        made = run_job("plan", given(PlanParams, params, without=("git_commit",)))
        for line in made["lines"]:
            log.info("%s", line)
        if made["empty"]:
            raise AirflowSkipException(f"plan {made['id']} changes nothing")
        return {"id": made["id"], "changes": made["changes"], "lines": made["lines"]}

    @lake_task
    def build(made: dict[str, Any]) -> dict[str, Any]:
        """Build the green versions from the log; from then on they are maintained like the blue ones."""
        return run_job("build", {"plan": made["id"]})

    @lake_task
    def compare(made: dict[str, Any], built: dict[str, Any]) -> list[str]:
        """Blue against green at one position, for each table that had a version before."""
        greens: dict[str, str] = built["greens"]
        diffs = [
            run_job(
                "diff",
                {
                    "table": one["table"],
                    "blue": one["blue"],
                    "green": greens[one["table"]],
                    "plan": made["id"],
                },
                part=one["table"],
            )
            for one in made["changes"]
            if one["action"] == "changed" and one["table"] in greens
        ]
        lines = difference_lines(diffs)
        for line in lines:
            log.info("%s", line)
        return lines

    @lake_task(operator=ReportedTask, show_return_value_in_logs=False)  # Markdown, with every sign escaped
    def gate(made: dict[str, Any], compared: list[str]) -> str:
        """Certificates, lag, expectations of the contracts; returns what the approver reads."""
        context = get_current_context()
        asked = given(GateParams, context["params"], without=("plan", "reasons_by"))
        if asked.get("unwitnessed"):
            asked["reasons_by"] = triggered_by(context)
        found = run_job("gate", {"plan": made["id"], **asked})
        for check in found["checks"]:
            log.info("%s %s %s: %s", "ok  " if check["passed"] else "FAIL", check["table"], check["name"],
                     check["detail"])  # fmt: skip
        if not found["passed"]:
            failed = [f"{one['table']} {one['name']}" for one in found["checks"] if not one["passed"]]
            raise ShownFailure(f"the gate refused plan {made['id']}: {', '.join(failed)}")
        link, place = report_of(made["id"], found.get("report"))
        said = [*made["lines"], *compared, f"gate: {len(found['checks'])} checks passed"]
        proofs = [one for one in found["checks"] if one["name"] in ("witness", "ingest")]
        said += [f"  {one['table']}: {one['detail']}" for one in proofs]
        for line in (*said, f"report: {place}"):
            log.info("%s", line)
        return f"{as_list(said)}\n- {link}"

    approve = Approval(
        task_id="approve",
        subject="Promote plan {{ ti.xcom_pull(task_ids='plan')['id'] }}?",
        body="{{ ti.xcom_pull(task_ids='gate') }}",
        params={
            "reason": Param(
                None,
                type=["null", "string"],
                maxLength=LONGEST_REASON,
                title="Reason",
                description="why it is approved or rejected",
            )
        },
        response_timeout=timedelta(hours=limits().approval_hours),
        retries=3,
        retry_delay=timedelta(seconds=3),
    )

    @lake_task(outlets=[SERVED])
    def promote(made: dict[str, Any], answer: dict[str, Any]) -> dict[str, Any]:
        """One commit switches all tables of the plan; refused if production moved since the plan.

        A plan that somebody has made live elsewhere is live: nothing is asked for again.
        """
        approver, why = answered(answer)
        if answer.get(ELSEWHERE):
            log.info("%s has made plan %s live, not through Airflow: %s", approver, made["id"], why)
            done = {"release": answer[ELSEWHERE]}
        else:
            done = run_job("promote", {"plan": made["id"], "approved_by": approver}, by=approver, why=why)
        switched = [one["table"] for one in made["changes"] if one["action"] in ("new", "changed")]
        announce("released", switched, release=done["release"])
        return done

    made = plan()
    gated = gate(made, compare(made, build(made)))
    gated >> approve
    promote(made, approve.output)  # type: ignore[arg-type]


def release_dag() -> DAG:
    """`release`, as a DAG of the file that calls this."""
    return dag_of(
        release,
        RELEASE_POOL,
        retry_delay=timedelta(seconds=10),
        max_active_runs=MOST_RUNS,
        params=form(
            PlanParams,
            {
                "definitions": {"description": "{about}, or where this is {} or empty"},
                "tables": {
                    "description": "{about}, one a line; empty: all that changed, without what was "
                    "rolled back"
                },
            },
            without=("git_commit",),
        )
        | form(
            GateParams,
            {"unwitnessed": {"description": "{about}, one a line"}},
            without=("plan", "reasons_by"),
        ),
    )
