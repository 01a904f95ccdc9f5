"""The makers of the DAGs whose tasks are a job each: `backup`, `maintain`, `reload`, `replay`, `rollback`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import DAG, Param, get_current_context

from twinlake.airflow.assets import SERVED, TOPICS, announce, suggestions
from twinlake.airflow.common import BATCH_POOL, RELEASE_POOL, dag_of, nightly, run_limit
from twinlake.airflow.forms import form, given
from twinlake.airflow.jobs import run_job, skip_scheduled_without_folder, triggered_by
from twinlake.airflow.task import lake_task
from twinlake.server.job_models import BackupParams, ReloadParams, ReplayParams
from twinlake.server.release_models import RetireParams, RollbackParams

NAME = "^[a-z][a-z0-9_]*$"
REASON = "^[a-z][a-z0-9_]*(:[A-Za-z][A-Za-z0-9_]*)?$"


def backup() -> None:
    """DAG `backup`: every night takes a backup into the folder that `[backup]` of twinlake.toml names, and
    lets the oldest go.
    """

    @lake_task
    def take() -> dict[str, Any]:
        """Copy what is new since the last one; nothing stops for it."""
        skip_scheduled_without_folder()
        return run_job("backup", given(BackupParams, get_current_context()["params"]))

    take()


def backup_dag() -> DAG:
    """`backup`, as a DAG of the file that calls this."""
    return dag_of(
        backup,
        BATCH_POOL,
        retry_delay=timedelta(minutes=5),
        **nightly("30 2 * * *"),
        dagrun_timeout=run_limit(),
        params=form(BackupParams),
    )


def maintain() -> None:
    """DAG `maintain`: every night maintains no more what no kept release uses, deletes records that are older
    than their contracts keep them, compacts logs, deletes old files.
    """

    @lake_task
    def retire() -> dict[str, Any]:
        """Maintain no more what none of the kept releases uses; its files go six hours later."""
        return run_job("retire", given(RetireParams, get_current_context()["params"]))

    @lake_task
    def expire() -> dict[str, Any]:
        """Delete records older than contracts keep them, and windows that tables show no more."""
        return run_job("expire", {})

    @lake_task
    def clean_up() -> dict[str, Any]:
        """Compact the logs; delete the files that nobody reads any more."""
        return run_job("maintain", {})

    retire() >> [expire(), clean_up()]


def maintain_dag() -> DAG:
    """`maintain`, as a DAG of the file that calls this."""
    return dag_of(
        maintain,
        BATCH_POOL,
        retry_delay=timedelta(minutes=5),
        **nightly("30 3 * * *"),
        dagrun_timeout=run_limit(),
        params=form(RetireParams, {"keep": {"description": "{about}; the live one is among them"}}),
    )


def reload() -> None:
    """DAG `reload`: makes topics, schemas and contracts active as the project's files have them, all or
    none.
    """

    @lake_task
    def make_active() -> dict[str, Any]:
        """Of the files beside the lake server. Nothing else stops; what is wrong is refused as a whole."""
        return run_job("reload", given(ReloadParams, get_current_context()["params"]))

    make_active()


def reload_dag() -> DAG:
    """`reload`, as a DAG of the file that calls this."""
    return dag_of(
        reload,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        dagrun_timeout=run_limit(),
        params=form(ReloadParams, without=("check",)),
    )


def replay() -> None:
    """DAG `replay`: after a topic's contract was fixed, validates what it has in quarantine again."""

    @lake_task
    def judge_again() -> dict[str, Any]:
        """The active contract decides; every table takes the records that are valid now."""
        params = get_current_context()["params"]
        reasons = [] if params["reason"] is None else [params["reason"]]
        return run_job("replay", {**given(ReplayParams, params), "reasons": reasons})

    judge_again()


def replay_dag() -> DAG:
    """`replay`, as a DAG of the file that calls this."""
    return dag_of(
        replay,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        dagrun_timeout=run_limit(),
        params=_of_replay(),
    )


def _of_replay() -> dict[str, Param]:
    """One reason, which a form has a field for; the job takes several."""
    fields = form(
        ReplayParams,
        {
            "topic": {"pattern": NAME, "maxLength": 200, "examples": suggestions(TOPICS)},
            "reasons": {
                "type": ["null", "string"], "pattern": REASON, "maxLength": 200,
                "description": "{about}; empty: all",
            },
        },
    )  # fmt: skip
    fields["reason"] = fields.pop("reasons")
    return fields


def rollback() -> None:
    """DAG `rollback`: makes an earlier release live again, in one commit."""

    @lake_task(outlets=[SERVED])
    def roll_back() -> dict[str, Any]:
        """Commit the earlier release; its versions were fed all the time, so they are fresh."""
        context = get_current_context()
        params = context["params"]
        asked = given(RollbackParams, params, without=() if params.get("reason") else ("reason",))
        asked["approved_by"] = triggered_by(context)
        done = run_job("rollback", asked)
        announce("rolled back", done["tables"], release=done["release"])
        return done

    roll_back()


def rollback_dag() -> DAG:
    """`rollback`, as a DAG of the file that calls this."""
    return dag_of(
        rollback,
        RELEASE_POOL,
        retry_delay=timedelta(seconds=10),
        dagrun_timeout=run_limit(),
        params=form(RollbackParams, without=("approved_by",)),
    )
