"""The maker of the DAG `batch`."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pendulum
from airflow.sdk import DAG, CronDataIntervalTimetable, Param, get_current_context, task, task_group

from twinlake.airflow.assets import SERVED, announce
from twinlake.airflow.common import BATCH_POOL, dag_of, run_limit
from twinlake.airflow.jobs import live_tables, log, run_job
from twinlake.airflow.task import ShownFailure, lake_task
from twinlake.base.times import format_moment, parse_moment

DUE, ALL = "due", "all"


def batch() -> None:
    """DAG `batch`: every 15 minutes rebuilds and certifies of each table what its log has gained records for.

    Once a day that is all of history; of tables without windows it is all or nothing. A backfill of this DAG
    (`airflow backfill create`, or the button of its page) does instead exactly the windows that start in the
    data interval of each of its runs. It leaves out tables without windows, and fails for an interval before
    the first window of all tables.
    """

    @task
    def tables(stored: bool) -> list[str]:
        """The live tables that store rows, or those that are views; in a backfill those with windows."""
        of_backfill = backfilled() is not None
        live = [one for one in live_tables() if one["windows"] or not of_backfill]
        return [one["name"] for one in live if one["stored"] == stored]

    @lake_task(map_index_template="{{ table }}")
    def rebuild(table: str) -> str:
        """Replace closed segments by what the log gives; refused where the two differ."""
        run_job("rebuild", asked(table))
        return table

    @lake_task(map_index_template="{{ table }}", outlets=[SERVED])
    def certify(table: str) -> dict[str, Any]:
        """Compare the view, open segment included, with the batch result at one position."""
        made = run_job("verify", asked(table))
        if made["due"]:
            announce("certified", [table], covers=made["covers"], position=made["position"])
        return made

    @task_group
    def both(table: str) -> None:
        certify(rebuild(table))

    @task(trigger_rule="none_failed")
    def summary() -> list[str]:
        """What was certified, one line per table; fails where a backfill's interval is before all of them."""
        context: dict[str, Any] = get_current_context()  # type: ignore[assignment]
        found = context["ti"].xcom_pull(task_ids=["both.certify", "certify_views"]) or []
        lines = summary_lines(live_tables(), [one for one in found if one], backfilled())
        for line in lines:
            log.info("%s", line)
        return lines

    both.expand(table=tables.override(task_id="stored_tables")(True)) >> (said := summary())
    certify.override(task_id="certify_views").expand(table=tables.override(task_id="views")(False)) >> said


def backfilled() -> tuple[str, str] | None:
    """The data interval, where this run is one of a backfill."""
    context: dict[str, Any] = get_current_context()  # type: ignore[assignment]
    if context["dag_run"].run_type != "backfill":
        return None
    return format_moment(context["data_interval_start"]), format_moment(context["data_interval_end"])


def asked(table: str) -> dict[str, Any]:
    """What is asked of the lake server about the table, which also names the mapped task."""
    context: dict[str, Any] = get_current_context()  # type: ignore[assignment]
    context["table"] = table
    if (interval := backfilled()) is not None:
        return {"table": table, "from": interval[0], "to": interval[1]}
    if (windows := context["params"]["windows"]) not in (DUE, ALL):
        raise ShownFailure(f"windows is {windows!r}, not {DUE} or {ALL}")
    return {"table": table, "due": windows == DUE}


def summary_lines(
    live: Iterable[dict[str, Any]], certified: Iterable[dict[str, Any]], interval: tuple[str, str] | None
) -> list[str]:
    """What a person wants to know of the run, about the live tables and what was certified of them."""
    lines, firsts = [], []
    for one in certified:
        rows, covers = one["rows_compared"], one["covers"]
        if interval is not None and not rows:
            covers += ": none of them has a row"
        elif not one["due"]:
            covers += "; nothing was pending, this is its newest certificate"
        lines.append(f"{one['table']}: speed and batch are equal, {rows:,} rows compared ({covers})")
        lines += [f"  {one['proof']}"] if one.get("proof") else []
        lines += [f"  {topic}" for topic in one.get("topics", ())]
        firsts += [one["first_window"]] if one["first_window"] else []
    if interval is None:
        return lines
    first = min(firsts, key=parse_moment, default=None)
    if first is None or parse_moment(interval[1]) <= parse_moment(first):
        begins = f"the first window of all tables begins at {first}" if first else "no table has a window yet"
        raise ShownFailure(f"nothing lies between {interval[0]} and {interval[1]}: {begins}")
    if left_out := [one["name"] for one in live if not one["windows"]]:
        lines.append(f"left out, because they have no windows: {', '.join(left_out)}")
    return lines


def batch_dag() -> DAG:
    """`batch`, as a DAG of the file that calls this."""
    return dag_of(
        batch,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        # with data intervals, which a backfill's runs are about: they may lie before this Airflow was made
        schedule=CronDataIntervalTimetable("*/15 * * * *", timezone="UTC"),
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        dagrun_timeout=run_limit(),
        max_active_tasks=2,
        params={
            "windows": Param(
                DUE,
                enum=[DUE, ALL],
                title="Windows",
                description=f"{DUE}: those with new records, all of them once a day; {ALL}: all of history "
                "now; in a backfill those of each run's data interval, whatever is chosen here",
            )
        },
    )
