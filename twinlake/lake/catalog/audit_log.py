"""AuditLog: who asked for what, when, by which way and why, and how it ended. `<lake>/audit`, kept for ever.

An act is written down before it is taken: there is none without its entry. How it ended is an entry of its
own, which names the job. An act that a kill left without one gets it at the next start.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa

from twinlake.base.errors import TwinlakeError
from twinlake.base.job import NOBODY, Asker, Job
from twinlake.base.location import Location
from twinlake.lake.catalog import release_log
from twinlake.lake.catalog.plans import STAYS, Plans
from twinlake.lake.delta import data_file, delta
from twinlake.lake.delta.ledger import Ledger, Row
from twinlake.lake.delta.table_state import TableState

SCHEMA = pa.schema(
    [
        ("sequence", pa.int64()),
        *[(name, pa.string()) for name in ("event", "at", "act", "who", "via", "why", "what", "job")],
        ("attempt", pa.int64()),
        *[(name, pa.string()) for name in ("outcome", "ended_at")],
    ]
)
FOLDER = "audit"
ACTS = frozenset(
    {"accept", "backup", "build", "changelog", "expire", "pause", "plan", "promote", "publish", "rebuild",
     "reject", "reload", "replay", "restructure", "resume", "retire", "rollback", "verify", "webhook"}
)  # fmt: skip
"""The kinds of jobs that are acts of somebody; others only look, or clean up."""
ROUTINE, LOOKS = "due", "check"
"""With these a job is what the schedule does by itself, or only says what would be done."""
DECIDES = ("repair", "unwitnessed")
"""With these it changes what readers see, or what a gate lets pass, whatever else it is."""
CANCEL = "cancel"
QUERY = "query"
"""What is cancelled where that is no job: `job` is then the query's id."""
USERS = "users"
"""The act of who changes the users: it is no job."""
ROTATE = "rotate"
"""The act of who rotates secrets: it is none, either."""
UPGRADE = "upgrade"
"""The act of who upgrades a data directory, or goes back: the same."""
SWITCHES = ("promote", "rollback")
ABOUT = ("table", "topic", "name")
TABLES = "tables"
"""In `what` of an act on a plan, or on the live release: the tables that it would change when it was asked
for."""
SCHEDULE = "airflow"
"""Who asks for what Airflow starts by itself."""
UNNAMED = "unnamed"
"""Who asks with the lake server's token and does not say who it is."""
_NAMES_WHO = ("approved_by", "rejected_by", "by", "reasons_by")
"""The parameters in which a job says who wants it."""
_LONG = 300


@dataclass(frozen=True, kw_only=True)
class Act:
    """`what` are the parameters of the job; `outcome` is how it ended, None while it has not.

    Moments are RFC 3339, UTC.
    """

    at: str
    act: str
    who: str
    via: str
    why: str | None = None
    what: dict[str, Any] = field(default_factory=dict)
    job: str
    attempt: int = 1
    outcome: str | None = None
    ended_at: str | None = None

    @property
    def about(self) -> tuple[str, ...]:
        """The names of the tables, the topic or the changelog that it was about."""
        named = [self.what[name] for name in ABOUT if isinstance(self.what.get(name), str)]
        tables = self.what.get(TABLES)
        return (*named, *(tables if isinstance(tables, list) else ()))

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "about": list(self.about)}


def is_act(kind: str, params: Mapping[str, Any], asker: Asker = NOBODY) -> bool:
    """Whether somebody answers for such a job: what is due is asked for by the schedule, or by a person."""
    if any(params.get(name) for name in DECIDES):
        return True
    if params.get(ROUTINE) and (asker.by in (None, SCHEDULE)):
        return False
    return kind in ACTS and not params.get(LOOKS)


class AuditLog:
    """Safe between threads; one process writes it, the one that holds the lake's lock."""

    def __init__(self, lake: Location) -> None:
        self._lake = lake
        self._ledger = Ledger(lake / FOLDER, SCHEMA)
        self._lock = threading.Lock()
        rows = self._ledger.rows()
        self._sequence = max((row["sequence"] for row in rows), default=0)
        self._open = {(one.job, one.attempt): one for one in _acts(rows) if one.outcome is None}
        """Acts whose jobs have not ended, as far as is written down."""

    def asked(self, job: Job, asker: Asker, at: str) -> None:
        """Somebody asks for this job; on return it is written down. FullDiskError where there is no room."""
        named = next((job.params[name] for name in _NAMES_WHO if job.params.get(name)), UNNAMED)
        what = {
            name: value if name == TABLES else _short(value)
            for name, value in job.params.items()
            if value not in (None, False, [])
        }
        if TABLES not in what and (tables := self._changed_tables(job)):
            what[TABLES] = tables
        self._ask(Act(
            at=at, act=job.kind, who=asker.by or named, via=asker.via,
            why=asker.why or job.params.get("reason"), what=what, job=job.id, attempt=job.attempt,
        ))  # fmt: skip

    def cancelled(self, job: Job, asker: Asker, at: str) -> None:
        """Somebody asks for this job to end."""
        of = {"kind": job.kind, **{name: job.params[name] for name in ("table",) if job.params.get(name)}}
        self._request(CANCEL, of, job.id, asker, at, job.attempt)

    def query_cancelled(self, id: str, of: Mapping[str, Any], asker: Asker, at: str) -> None:
        """Somebody wants a query of somebody else's to end; `of` is what is known of it. On return it is
        written down; FullDiskError where there is no room."""
        what = {"kind": QUERY, **{name: _short(value) for name, value in of.items()}}
        self._request(CANCEL, what, id, asker, at)

    def users_changed(self, what: Mapping[str, Any], asker: Asker, at: str) -> None:
        """Somebody adds, removes or changes a user; `what` says which. As `query_cancelled`."""
        self._request(USERS, dict(what), uuid4().hex[:12], asker, at)

    def secrets_rotated(self, names: Sequence[str], asker: Asker, at: str) -> None:
        """Somebody rotates secrets of these names. As `query_cancelled`."""
        self._request(ROTATE, {"secrets": ", ".join(names)}, uuid4().hex[:12], asker, at)

    def upgraded(self, what: Mapping[str, Any], asker: Asker, at: str) -> None:
        """Somebody has upgraded, or goes back. As `query_cancelled`."""
        self._request(UPGRADE, dict(what), uuid4().hex[:12], asker, at)

    def ended(self, job: Job) -> None:
        """How the job has ended, where it was an act."""
        with self._lock:
            act = self._open.get((job.id, job.attempt))
            if act is None:
                return
            wrong = (job.error or {}).get("what")
            outcome = f"{job.state}: {wrong}" if wrong and job.state == "failed" else job.state
            if job.state == "interrupted" and act.act in SWITCHES and (made := self._released_by(job.id)):
                outcome = f"{job.state}; release {made} was committed before"
            self._append("ended", replace(act, outcome=outcome, ended_at=job.ended_at))
            del self._open[job.id, job.attempt]

    def open(self) -> list[Act]:
        """Acts whose jobs have not ended, as far as is written down."""
        with self._lock:
            return list(self._open.values())

    def asker(self, job: Job) -> Asker:
        """Who has asked for a job that has not ended; nobody of one that is no act."""
        with self._lock:
            act = self._open.get((job.id, job.attempt))
        if act is None:
            return NOBODY
        by = None if act.who == UNNAMED else act.who
        return Asker(by=by, via=act.via, why=act.why)  # type: ignore[arg-type]

    def acts(self) -> list[Act]:
        """All of them, newest first."""
        return list(reversed(_acts(self._ledger.rows())))

    def compact(self) -> None:
        """Now and then one file in place of many; every entry stays."""
        with self._lock:
            self._ledger.compact()

    def _request(
        self, act: str, what: dict[str, Any], job: str, asker: Asker, at: str, attempt: int = 1
    ) -> None:  # fmt: skip
        """What is no job of its own, and so has no end."""
        self._ask(Act(
            at=at, act=act, who=asker.by or UNNAMED, via=asker.via, why=asker.why, what=what, job=job,
            attempt=attempt, outcome="asked for", ended_at=at,
        ))  # fmt: skip

    def _changed_tables(self, job: Job) -> list[str]:
        """The tables that a plan, or going back to an earlier release, changes for readers; none where that
        cannot be known, which the job itself will say."""
        try:
            if plan := job.params.get("plan"):
                return [one.table for one in Plans(self._lake).load(plan).changes if one.action not in STAYS]
            if job.kind == "rollback":
                history = release_log.releases(self._lake)
                now, then = history[-1].tables, release_log.rollback_target(history, job.params["to"]).tables
                return sorted(one for one in now.keys() | then.keys() if now.get(one) != then.get(one))
        except (TwinlakeError, OSError, IndexError):
            pass
        return []

    def _released_by(self, job: str) -> int | None:
        """The release that a job had committed before a kill; None where that cannot be known."""
        try:
            found = (one.number for one in release_log.releases(self._lake) if one.job == job)
            return next(found, None)
        except (TwinlakeError, OSError):
            return None

    def _ask(self, act: Act) -> None:
        with self._lock:
            self._append("asked", act)
            if act.outcome is None:
                self._open[act.job, act.attempt] = act

    def _append(self, event: str, act: Act) -> None:
        row: Row = {**asdict(act), "what": json.dumps(act.what), "event": event}
        row["sequence"] = self._sequence + 1
        self._ledger.append([row])
        self._sequence += 1


def read_acts(lake: Location) -> list[Act]:
    """All of them, newest first, for a process that ends soon after.

    **why** not as the server reads them: threads that read abort such a process at its end, now and then.
    """
    path = lake / FOLDER
    if not delta.exists(path):
        return []
    rows: list[Row] = []
    for name in TableState(path, appends=False).files:
        rows += data_file.read(path / unquote(name), use_threads=False).to_pylist()
    return list(reversed(_acts(rows)))


def _acts(rows: list[Row]) -> list[Act]:
    """Oldest first, each with how it ended."""
    found: dict[tuple[str, int, str], Act] = {}
    names = [one.name for one in fields(Act)]
    for row in sorted(rows, key=lambda row: row["sequence"]):
        act = Act(**{**{name: row[name] for name in names}, "what": json.loads(row["what"])})
        # a second one who cancels the same job has an entry of their own
        key = (act.job, act.attempt, act.act if act.act != CANCEL else f"{CANCEL} {row['sequence']}")
        found[key] = act
    return list(found.values())


def _short(value: Any) -> Any:
    """Of many definitions the names."""
    text = json.dumps(value)
    if len(text) <= _LONG:
        return value
    return sorted(value) if isinstance(value, dict) else f"{text[:_LONG]}..."
