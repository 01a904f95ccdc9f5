"""The maker of the DAG `backfill`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from itertools import pairwise
from typing import Any

from airflow.sdk import DAG, Param, get_current_context, task

from twinlake.airflow.assets import TABLES, suggestions
from twinlake.airflow.common import BATCH_POOL, dag_of
from twinlake.airflow.forms import form, given
from twinlake.airflow.jobs import live_tables, log, run_job
from twinlake.airflow.task import ShownFailure, lake_task
from twinlake.base.errors import UsageError
from twinlake.base.times import format_moment, parse_moment
from twinlake.server.job_models import RebuildParams

MOST_CHUNKS = 500
MOST_HOURS = 24 * 31
DIFFERENCES_STAY = "only what agrees is replaced: a chunk in which speed and batch differ stays, and fails"
DIFFERENCES_REPAIRED = "what is stored is replaced by what the log gives, even where the two differ"


def repair_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """What a rebuild does about differences; UsageError where it repairs them and nobody has said why."""
    reason = (params.get("reason") or "").strip()
    if not params.get("repair"):
        return {}
    if not reason:
        raise UsageError(
            "a repair needs its reason",
            "it replaces what readers have seen by something else",
            "say in `reason` why the log is right",
        )
    return {"repair": True, "reason": reason}


def chunks_between(start: str, end: str, hours: int) -> list[dict[str, str]]:
    """Half-open ranges [from, to) that touch and cover [start, end); UsageError where there is none."""
    if type(hours) is not int or not 1 <= hours <= MOST_HOURS:
        raise UsageError(
            what=f"{hours!r} is not a number of hours per chunk",
            why=f"it is not a whole number from 1 to {MOST_HOURS}",
            remedy="choose one",
        )
    for moment in (start, end):
        if not isinstance(moment, str):
            raise UsageError(f"{moment!r} is not a time", "it is not a text", "write it like 2026-01-31")
    first, last = parse_moment(start), parse_moment(end)
    if first >= last:
        raise UsageError(
            what=f"nothing lies between {start} and {end}",
            why="`from` is not before `to`",
            remedy="choose a `to` that is later than `from`",
        )
    size = timedelta(hours=hours)
    if (last - first) / size > MOST_CHUNKS:
        raise UsageError(
            what=f"{(last - first) / size:,.0f} chunks are too many",
            why=f"one run takes at most {MOST_CHUNKS}",
            remedy="choose larger chunks or a shorter range",
        )
    edges = [first]
    while edges[-1] < last:
        edges.append(edges[-1] + size if last - edges[-1] > size else last)  # the year 10000 is none
    return [{"from": format_moment(edge), "to": format_moment(after)} for edge, after in pairwise(edges)]


def refuse_nothing(table: str, start: str, end: str, rebuilt: Iterable[dict[str, Any]]) -> int:
    """How many rows all chunks together have compared; UsageError where there was none."""
    rows = sum(int(one["rows_compared"]) for one in rebuilt)
    if not rows:
        raise UsageError(
            what="nothing was rebuilt",
            why=f"no window of {table} begins between {start} and {end}",
            remedy=f"choose `from` and `to` around windows that `SELECT * FROM serve.{table}` shows",
        )
    return rows


def backfill() -> None:
    """DAG `backfill`: rebuilds the windows of one table between two times, in chunks.

    Unless it is to repair differences, it replaces only what agrees: a chunk in which speed and batch differ
    stays as it is and fails.
    """

    @task(retries=0)
    def chunks() -> list[dict[str, Any]]:
        """What is to be rebuilt; the form has checked the parameters, this checks them again."""
        params = get_current_context()["params"]
        windowed = [table["name"] for table in live_tables() if table["windows"]]
        if params["table"] not in windowed:
            known = ", ".join(windowed) or "there is none"
            named = repr(params["table"])
            raise ShownFailure(f"{named} is not a live table that has windows. Those are: {known}")
        try:
            repair = repair_of(params)
            ranges = chunks_between(params["from"], params["to"], params["chunk_hours"])
        except UsageError as error:
            raise ShownFailure(str(error)) from None
        log.info("%d chunks; %s", len(ranges), DIFFERENCES_REPAIRED if repair else DIFFERENCES_STAY)
        others = given(RebuildParams, params, without=("from", "to", "repair", "reason"))
        return [{**others, **one, **repair} for one in ranges]

    @lake_task(map_index_template="{{ windows }}")
    def rebuild(chunk: dict[str, Any]) -> dict[str, Any]:
        """Rebuild the closed segments of one range of windows."""
        context: dict[str, Any] = get_current_context()  # type: ignore[assignment]
        context["windows"] = f"{chunk['from']} to {chunk['to']}"
        return run_job("rebuild", chunk)

    @task
    def found(rebuilt: list[dict[str, Any]]) -> int:
        """How many rows were compared; fails where nothing lies in the range: another one was meant."""
        params = get_current_context()["params"]
        try:
            return refuse_nothing(params["table"], str(params["from"]), str(params["to"]), rebuilt)
        except UsageError as error:
            raise ShownFailure(str(error)) from None

    found(rebuild.expand(chunk=chunks()))


def backfill_dag() -> DAG:
    """`backfill`, as a DAG of the file that calls this."""
    return dag_of(
        backfill,
        BATCH_POOL,
        retry_delay=timedelta(seconds=15),
        params=_form(),
    )


def _form() -> dict[str, Param]:
    fields = form(
        RebuildParams,
        {
            "table": {"description": "{about}: a live one that has windows", "examples": suggestions(TABLES)},
            "from": {"format": "date-time"},
            "to": {"format": "date-time"},
            "repair": {"description": f"{{about}}; off: {DIFFERENCES_STAY}; on: {DIFFERENCES_REPAIRED}"},
            "reason": {"description": "{about}; needed where differences are repaired"},
        },
        needed=("from", "to"),
        without=("due", "version"),
    )
    hours = Param(
        6, type="integer", exclusiveMinimum=0, exclusiveMaximum=MOST_HOURS + 1, title="Hours per chunk",
        description=f"1 to {MOST_HOURS}",
    )  # fmt: skip
    return {**{name: fields.pop(name) for name in ("table", "from", "to")}, "chunk_hours": hours, **fields}
