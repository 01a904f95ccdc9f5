"""What is not well now, by what the services say and the contracts promise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from twinlake.alarms.alarm import Condition
from twinlake.base.errors import TwinlakeError
from twinlake.base.times import format_duration, parse_moment
from twinlake.config.alarms import Alarms
from twinlake.services.lake_status import NOTHING as NO_FIGURES
from twinlake.services.problems import problems
from twinlake.topics.promises import NOTHING, Promise

LEAST_FREE_BYTES = 1 << 30
_CONDITION_OF = {
    "part": "service", "supervisor": "service", "topic": "stopped", "warning": "topic", "version": "stalled",
    "certificate": "unequal", "witness": "unequal", "changelog": "stalled", "published": "stalled",
    "webhook": "stalled",
    "damage": "damaged",
    "spark": "service", "lake server": "service",
}  # fmt: skip
"""Which kind of alarm a problem is that `twinlake status` names."""


@dataclass(frozen=True, kw_only=True)
class Disk:
    """The room on the disk of the data directory, in bytes."""

    free: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Figures:
    """What was seen in one look. `status` is the lake server's; None where it did not answer: `error` says
    why. `restarts` and `refused` are of the last ten minutes: by part how often it was started again, by
    topic how many records were refused, of how many."""

    parts: list[dict[str, Any]]
    supervisor: TwinlakeError | None
    disk: Disk
    status: dict[str, Any] | None
    error: TwinlakeError | None = None
    unasked: TwinlakeError | None = None
    """Why the services could not be asked; `parts` are those of before."""
    nobody_let_in: TwinlakeError | None = None
    """Why the console and the SQL server let nobody in: the users' file cannot be read."""
    restarts: Mapping[str, int]
    refused: Mapping[str, tuple[int, int]]


OFTEN = 3
"""A service that was started again so often in ten minutes does not stay up."""
LEAST_RECORDS = 20
"""Of fewer a share says little."""


def conditions(
    seen: Figures, promises: Mapping[str, Promise], bounds: Alarms, now: datetime
) -> Iterator[Condition]:
    """Every condition that holds now; `promises` are by table or topic."""
    status = seen.status or NO_FIGURES
    live = {f"{table} {version}" for table, version in _live(status).items()}
    for kind, about, title, error in problems(seen.parts, status, seen.supervisor):
        if kind == "version" and title not in live:
            continue  # no reader sees it: a release has replaced it, or the gate says so before one
        shown = "damage" if kind == "version" and "file" in error else kind
        said = {name: str(error.get(name) or "") for name in ("what", "why", "remedy")}
        yield Condition(kind=_CONDITION_OF[shown], title=title, about=about, **said)
    yield from _services(seen)
    yield from full_disk(seen.disk, bounds)
    if seen.status is None:
        return
    yield from _unknown_lags(status)
    yield from _late(status, promises, bounds)
    yield from _quiet(status, promises, now)
    yield from _refused(seen, bounds)
    yield from _waiting(status, bounds, now)
    yield from _old(status, bounds, now)
    if unsafe := of_backups(status.get("backup"), bounds, now):
        yield unsafe


def _live(status: Mapping[str, Any]) -> Mapping[str, str]:
    """By table, the version that readers see."""
    found: Mapping[str, str] = (status["release"] or {}).get("tables", {})
    return found


def _services(seen: Figures) -> Iterator[Condition]:
    for part in seen.parts:
        name = part["part"]
        if not part["answers"] and not part["error"]:
            yield silent(part)
        if (times := seen.restarts.get(name, 0)) >= OFTEN:
            yield Condition(
                kind="restarts", title=name, what=f"it was started {times} times in the last ten minutes",
                why=str(part["note"] or part["answer"]), remedy=f"`twinlake logs {name}` says what ends it",
            )  # fmt: skip
    asks = [part for part in seen.parts if part["service"] in ("sql", "console") and part["answers"]]
    if (users := seen.nobody_let_in) and asks:
        yield Condition(kind="service", title="users", what=users.what, why=str(users.why),
                        remedy=str(users.remedy))  # fmt: skip
    if seen.unasked:
        why = f"{seen.unasked.what} {seen.unasked.why}".strip()
        yield Condition(kind="unknown", title="services", what="they could not be asked", why=why,
                        remedy=seen.unasked.remedy)  # fmt: skip
    lake = [part for part in seen.parts if part["service"] == "lake"]
    if seen.error and lake and all(part["answers"] and not part["error"] for part in lake):
        why = f"{seen.error.what} {seen.error.why}".strip()
        yield Condition(
            kind="unknown", title="lake server", what="its figures are not known", why=why,
            remedy=seen.error.remedy,
        )  # fmt: skip


def silent(part: Mapping[str, Any]) -> Condition:
    """A part of a service that does not answer."""
    return Condition(
        kind="service", title=part["part"], what="it does not answer", why=str(part["answer"]),
        remedy=f"`twinlake logs {part['part']}` says why; the supervisor starts again what has ended",
    )  # fmt: skip


def full_disk(disk: Disk, bounds: Alarms) -> Iterator[Condition]:
    """The disk of the data directory, where little is free."""
    if disk.free < max(bounds.disk_free_percent / 100 * disk.total, LEAST_FREE_BYTES):
        yield Condition(
            kind="disk", title="disk", what="it is nearly full",
            why=f"{disk.free:,} of {disk.total:,} bytes are free",
            remedy="make room; `twinlake retire` lets old releases go, and their files six hours later",
        )  # fmt: skip


def freshness(
    status: Mapping[str, Any], promises: Mapping[str, Promise], bounds: Alarms
) -> dict[str, tuple[float, float]]:
    """By live table, for how many seconds Kafka has had the oldest record that it lacks, from the broker to
    the view, and how many its contract or the setting allows; none of which it is not known."""
    live = _live(status)
    waits = {topic["name"]: topic["lag_seconds"] for topic in status["topics"]}
    found = {}
    for version in status["versions"]:
        table = version["table"]
        if live.get(table) != version["version"]:
            continue
        before = [waits.get(one) for one in version["position"]]
        if None in before:  # the broker does not say what it has
            continue
        behind = (version["lag_seconds"] or 0.0) + max((one for one in before if one), default=0.0)
        found[table] = (behind, promises.get(table, NOTHING).latency_s or bounds.freshness_seconds)
    return found


def _unknown_lags(status: Mapping[str, Any]) -> Iterator[Condition]:
    for topic in status["topics"]:
        if topic["lag_records"] is None and not topic["error"] and not topic["paused"]:
            yield Condition(
                kind="unknown", title=f"topic {topic['name']}", about=topic["name"],
                what="its lag is not known", why="the broker did not say how many records it holds",
                remedy="`twinlake logs lake` says why",
            )  # fmt: skip


def _late(status: Mapping[str, Any], promises: Mapping[str, Promise], bounds: Alarms) -> Iterator[Condition]:
    """Live tables whose oldest missing record is older than was promised."""
    for table, (behind, bound) in freshness(status, promises, bounds).items():
        if behind > bound:
            promised = promises.get(table, NOTHING).latency_s
            by = "its contract" if promised else "the setting freshness_seconds"
            late = format_duration(timedelta(seconds=round(behind)))
            paused = _paused(status, table)
            yield Condition(
                kind="freshness", title=table, about=table,
                what=f"it is {late} behind what Kafka has",
                why=f"{by} allows {format_duration(timedelta(seconds=bound))}"
                + "".join(f"; {one['what']} is {one['words']}" for one in paused),
                remedy=" and ".join(f"`twinlake resume {one['name']} --{one['kind']}`" for one in paused)
                or "`twinlake status` shows whether records wait before ingest (the topic's lag) or "
                "before the table; `twinlake logs lake` says why",
            )  # fmt: skip


def _paused(status: Mapping[str, Any], table: str) -> list[Mapping[str, Any]]:
    """What is paused of a table and its topics."""
    topics = {topic for one in status["versions"] if one["table"] == table for topic in one["position"]}
    named = {("table", table), *(("topic", topic) for topic in topics)}
    return [one for one in status.get("paused", ()) if (one["kind"], one["name"]) in named]


def _quiet(status: Mapping[str, Any], promises: Mapping[str, Promise], now: datetime) -> Iterator[Condition]:
    for topic in status["topics"]:
        allowed = promises.get(topic["name"], NOTHING).frequency_s
        newest = topic.get("newest")
        if not allowed or not newest or topic["paused"] or topic["lag_records"]:
            continue
        silent = now - parse_moment(newest)
        if silent > timedelta(seconds=allowed):
            yield Condition(
                kind="quiet", title=f"topic {topic['name']}", about=topic["name"],
                what=f"no record has come since {newest}",
                why=f"its contract has one every {format_duration(timedelta(seconds=allowed))}",
                remedy="ask who produces it; nothing is wrong here: all that Kafka has is read",
            )  # fmt: skip


def _refused(seen: Figures, bounds: Alarms) -> Iterator[Condition]:
    for topic, (refused, of) in seen.refused.items():
        if of >= LEAST_RECORDS and refused > bounds.quarantine_percent / 100 * of:
            yield Condition(
                kind="quarantine", title=f"topic {topic}", about=topic,
                what=f"{refused / of:.0%} of its records of the last ten minutes were refused",
                why=f"{refused:,} of the {of:,} of the last ten minutes; allowed are "
                f"{bounds.quarantine_percent} %",
                remedy=f"`twinlake quarantine {topic}` says why; once the contract is right, "
                f"`twinlake replay {topic}` brings them in",
            )  # fmt: skip


def _waiting(status: Mapping[str, Any], bounds: Alarms, now: datetime) -> Iterator[Condition]:
    waiting = status.get("waiting")
    if not waiting:
        return
    waits = now - parse_moment(waiting["since"])
    if waits > timedelta(minutes=bounds.approval_minutes):
        plan = waiting["plan"]
        yield Condition(
            kind="approval", title=f"plan {plan}", what="it waits for somebody to approve or reject it",
            why=f"it passed its gate at {waiting['since']} and changes {', '.join(waiting['tables'])}",
            remedy=f"`twinlake promote {plan}` or `twinlake reject {plan}`, or answer in Airflow",
        )  # fmt: skip


def _old(status: Mapping[str, Any], bounds: Alarms, now: datetime) -> Iterator[Condition]:
    """Live tables of which nobody has proved for too long that speed and batch agree."""
    release = status["release"]
    if not release:
        return
    newest = {(one["table"], one["version"]): one["created_at"] for one in status["certificates"]}
    allowed = timedelta(hours=bounds.certificate_hours)
    for table, version in release["tables"].items():
        at = newest.get((table, version))
        since = at or release["created_at"]
        if now - parse_moment(since) > allowed:
            has = f"its newest certificate is of {at}" if at else f"it has none since its release, {since}"
            yield Condition(
                kind="certificate", title=table, about=table, what="nobody has proved it lately", why=has,
                remedy=f"see that the DAG `batch` runs in Airflow; `twinlake verify {table}` proves it now",
            )  # fmt: skip


def of_backups(backup: Mapping[str, Any] | None, bounds: Alarms, now: datetime) -> Condition | None:
    """Of a lake that has a folder for them, by what its server says: the last failed, or there was none for
    too long."""
    if not backup:
        return None
    newest, failed = backup["newest"], backup["failed"]
    has = f"the newest is of {newest}" if newest else "there is none yet"
    take = "`twinlake backup` takes one now"
    if failed:
        why = f"{failed['what']} {failed['why']}".strip()
        return Condition(kind="backup", title="backup", what="the last one failed", why=f"{why}; {has}",
                         remedy=f"{failed['remedy']}; {take}".removeprefix("; "))  # fmt: skip
    since = newest or backup["since"]
    if since and now - parse_moment(since) > timedelta(hours=bounds.backup_hours):
        return Condition(
            kind="backup", title="backup", what="none has been taken lately",
            why=f"{has}; backup_hours allows {bounds.backup_hours} hours",
            remedy=f"see that the DAG `backup` runs in Airflow, and why it fails; {take}",
        )  # fmt: skip
    return None
