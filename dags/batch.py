"""DAG `batch`: every 15 minutes rebuilds and certifies of each table what its log has gained records for.

Once a day that is all of history; of tables without windows it is all or nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import Param, dag, get_current_context, task, task_group
from airflow.sdk.exceptions import AirflowFailException
from lake_jobs import live_tables, run_job
from lake_names import named

DUE, ALL = "due", "all"


@dag(
    dag_id=named("batch"),
    schedule="*/15 * * * *",
    start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
    catchup=False,
    max_active_runs=1,
    max_active_tasks=2,  # with backfill's one, two of the executor's slots are left for release and rollback
    is_paused_upon_creation=False,
    tags=["twinlake"],
    default_args={"retries": 2, "retry_delay": timedelta(seconds=15)},
    params={
        "windows": Param(
            DUE,
            enum=[DUE, ALL],
            title="Windows",
            description=f"{DUE}: those with new records, all of them once a day; {ALL}: all of history now",
        )
    },
    doc_md=__doc__,
)
def batch() -> None:
    @task
    def tables(stored: bool) -> list[str]:
        """The live tables that store rows, or those that are views."""
        return [table["name"] for table in live_tables() if table["stored"] == stored]

    @task(map_index_template="{{ table }}")
    def rebuild(table: str) -> str:
        """Replace closed segments by what the log gives; refused where the two differ."""
        run_job("rebuild", asked(table))
        return table

    @task(map_index_template="{{ table }}")
    def certify(table: str) -> dict[str, Any]:
        """Compare the view, open segment included, with the batch result at one position."""
        certificate = run_job("verify", asked(table))
        if not certificate.get("equal"):
            raise AirflowFailException(f"{table}: speed and batch differ: {certificate}")
        return certificate

    @task_group
    def both(table: str) -> None:
        certify(rebuild(table))

    both.expand(table=tables.override(task_id="stored_tables")(True))
    certify.override(task_id="certify_views").expand(table=tables.override(task_id="views")(False))


def asked(table: str) -> dict[str, Any]:
    """What is asked of the lake server about the table, which also names the mapped task."""
    context: dict[str, Any] = get_current_context()  # type: ignore[assignment]
    context["table"] = table
    if (windows := context["params"]["windows"]) not in (DUE, ALL):
        raise AirflowFailException(f"windows is {windows!r}, not {DUE} or {ALL}")
    return {"table": table, "due": context["params"]["windows"] == DUE}


batch()
