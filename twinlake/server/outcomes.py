"""What a job found or did, in a sentence: the command line and the console say the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinlake.base.job import Job, batches_text


def outcome(job: Job) -> str:
    """The sentence of a job that has a result; empty where its kind has none."""
    if job.result is None:
        return ""
    if job.kind in ("rebuild", "verify"):
        empty = is_empty(job.params, job.result)
        return nothing(job.kind, job.result) if empty else " ".join(certified(job.result))
    if job.kind == "replay":
        return replayed(job.result)
    if job.kind in ("promote", "rollback") and "release" in job.result:
        return released(job.result)
    return ""


def is_empty(params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a range was given in which nothing lies: most probably it was not the one that was meant."""
    return bool(not result["rows_compared"] and (params.get("from") or params.get("to")))


def nothing(kind: str, result: Mapping[str, Any]) -> str:
    """Of a job in whose range nothing lies."""
    done = "rebuilt" if kind == "rebuild" else "compared"
    first = result.get("first_window")
    begins = f"; its first one begins at {first}" if first else ""
    return f"nothing was {done}: no window of {result['table']} begins in that range{begins}"


def certified(result: Mapping[str, Any]) -> tuple[str, str, str]:
    """Whether both layers agree: the words before the verdict, the verdict, and where it holds."""
    verdict = "equal" if result["equal"] else "NOT equal"
    where = f"at {batches_text(result['position'])} over {result['covers']}"
    name = f"{result['table']} {result['version']}"
    return f"{name}: speed and batch are", verdict, f"{where}; {result['rows_compared']:,} rows compared"


def replayed(result: Mapping[str, Any]) -> str:
    """What became of the records in quarantine."""
    again = f"{result['judged']:,} records in quarantine were validated again"
    looked = f"{result['topic']}: {again} by contract {result['contract']}"
    if not result["replayed"]:
        return f"{looked}; all of them stay there"
    became = ", ".join(f"{count:,} {verdict}" for verdict, count in result["verdicts"].items() if count)
    first, last = result["batches"][0], result["batches"][-1]
    batches = f"{first}" if first == last else f"{first} to {last}"
    changed = f"{result['replayed']:,} changed, now {became} (log batch {batches})"
    return f"{looked}: {changed}"


def released(result: Mapping[str, Any]) -> str:
    """Which release is live now."""
    if not result["changed"]:
        return f"nothing to promote: release {result['release']} means the same"
    restored = f", the tables of release {result['restores']} again" if result["restores"] else ""
    return f"release {result['release']} is live{restored} (approved by {result['approved_by']})"
