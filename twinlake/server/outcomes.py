"""What a job found or did, and what an act was about, in words, for the command line and the console."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from twinlake.base.job import Job, batches_text

WITHOUT_JOB = frozenset({"users", "rotate", "upgrade"})
"""Acts that are no job and end none: the `job` that the audit log has of them names only their entry."""


def outcome(job: Job) -> str:
    """The sentence of a job that has a result; empty where its kind has none."""
    if job.result is None:
        return ""
    if job.kind in ("rebuild", "verify"):
        if is_empty(job.params, job.result):
            return nothing(job.kind, job.result)
        said = [pending(job.result), " ".join(certified(job.result)), disputed(job.result)]
        return ". ".join(filter(None, said))
    if job.kind == "replay":
        return replayed(job.result, job.params.get("reasons") or ())
    if job.kind == "expire":
        return ". ".join(expired(job.result))
    if job.kind in ("promote", "rollback") and "release" in job.result:
        return released(job.result)
    return ""


def is_empty(params: Mapping[str, Any], result: Mapping[str, Any]) -> bool:
    """Whether a range was given in which nothing lies: most probably it was not the one that was meant."""
    is_range = params.get("from") or params.get("to")
    return bool(is_range and result["equal"] and not result["rows_compared"])


def nothing(kind: str, result: Mapping[str, Any]) -> str:
    """Of a job in whose range nothing lies."""
    done = "rebuilt" if kind == "rebuild" else "compared"
    first = result.get("first_window")
    begins = f"; its first one begins at {first}" if first else ""
    return f"nothing was {done}: no window of {result['table']} begins in that range{begins}"


def pending(result: Mapping[str, Any]) -> str:
    """Of a job that was to do what is due, and had nothing to do; else empty."""
    if result.get("due", True):
        return ""
    return f"{result['table']} {result['version']}: nothing is pending; this is its newest certificate"


def disputed(result: Mapping[str, Any]) -> str:
    """How many rows another engine computes otherwise; empty where it agrees, or was not asked."""
    many = len(result.get("disputed") or ())
    return f"Another engine does not agree with {many:,} row{'' if many == 1 else 's'} of it" if many else ""


def certified(result: Mapping[str, Any]) -> tuple[str, str, str]:
    """Whether both layers agree: the words before the verdict, the verdict, and where it holds."""
    verdict = "equal" if result["equal"] else "NOT equal"
    where = f"at {batches_text(result['position'])} over {result['covers']}"
    name = f"{result['table']} {result['version']}"
    return f"{name}: speed and batch are", verdict, f"{where}; {result['rows_compared']:,} rows compared"


def replayed(result: Mapping[str, Any], reasons: Sequence[str] = ()) -> str:
    """What became of the records in quarantine; of those with one of these reasons, where any is given."""
    if not result["judged"]:
        why = f" for {' or '.join(reasons)}" if reasons else ""
        return f"{result['topic']}: nothing is in quarantine{why}"
    count = "1 record" if result["judged"] == 1 else f"{result['judged']:,} records"
    again = f"{count} in quarantine {'was' if result['judged'] == 1 else 'were'} validated again"
    looked = f"{result['topic']}: {again} by contract {result['contract']}"
    if not result["replayed"]:
        return f"{looked}; all of them stay there"
    became = ", ".join(f"{count:,} {verdict}" for verdict, count in result["verdicts"].items() if count)
    first, last = result["batches"][0], result["batches"][-1]
    batches = f"{first}" if first == last else f"{first} to {last}"
    changed = f"{result['replayed']:,} changed, now {became} (log batch {batches})"
    return f"{looked}: {changed}"


def expired(result: Mapping[str, Any]) -> list[str]:
    """What retention has deleted of each topic and table, or why nothing; a line each."""
    lines = [*map(_ended, result["tables"]), *map(_expired, result["topics"])]
    return lines or ["no contract of a topic says a retention, and no definition of a table"]


def _ended(one: Mapping[str, Any]) -> str:
    name = f"{one['table']} {one['version']} (shown for {one['retention']})"
    if not one["rows"]:
        return f"{name}: no window has ended"
    what = f"{one['rows']:,} states of windows before {one['before']}"
    if not one["deleted"]:
        return f"{name}: {what} would be deleted, and {one['bytes'] / 1e6:,.1f} MB freed at least"
    return f"{name}: {what} were deleted; {one['bytes'] / 1e6:,.1f} MB at least are free hours later"


def _expired(one: Mapping[str, Any]) -> str:
    name = f"{one['topic']} (kept for {one['retention']})"
    if not one["batch"]:
        return f"{name}: no record is older"
    old = f"{one['records']:,} records up to {one['until']} (log batch {one['batch']})"
    if one["needed_by"]:
        return f"{name}: {old} are older, and stay because of {'; '.join(one['needed_by'])}"
    tables = f"; rows stay, with the states of {', '.join(one['kept'])}" if one["kept"] else ""
    if not one["deleted"]:
        return f"{name}: {old} would be deleted, and {one['bytes'] / 1e6:,.1f} MB freed at least{tables}"
    return (
        f"{name}: {old} were deleted; {one['bytes'] / 1e6:,.1f} MB at least are free hours later{tables}. "
        "New logic does not see them any more"
    )


def released(result: Mapping[str, Any]) -> str:
    """Which release is live now."""
    if not result["changed"]:
        return f"nothing to promote: release {result['release']} means the same"
    restored = f", the tables of release {result['restores']} again" if result["restores"] else ""
    return f"release {result['release']} is live{restored} (approved by {result['approved_by']})"


def about(what: Mapping[str, Any]) -> str:
    """What somebody asked for, in one line: `what` of an act in the audit log."""
    return ", ".join(f"{name}={_shown(value)}" for name, value in what.items())


def _shown(value: Any) -> str:
    is_list = isinstance(value, list) and all(isinstance(one, str) for one in value)
    return ", ".join(value) if is_list else str(value)
