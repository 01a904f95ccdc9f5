"""The single checks of the gate. Pure: each answers in words that name the values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from twinlake.base.as_json import to_json
from twinlake.base.job import batches_text
from twinlake.config.sections import WITNESS_REQUIRED
from twinlake.kinds.kind import Kind
from twinlake.lake.catalog.certificates import Certificate
from twinlake.lake.catalog.disputed import lines
from twinlake.lake.catalog.plans import Plan
from twinlake.lake.catalog.release_log import Release
from twinlake.lake.catalog.topic_certificates import TopicCertificate
from twinlake.lake.catalog.version import Health, Version
from twinlake.topics.contract import Contract
from twinlake.witness.answer import Said

MAX_LAG_SECONDS = 10.0
MAX_CERTIFICATE_AGE_SECONDS = 900.0
MOST_ROWS = 5
"""So many rows in which another engine differs stand beside its check; the certificate has more."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One thing that was asked, with the answer in words that name the values."""

    table: str
    name: str  # production | certificate | witness | ingest | lag | columns | readable | expectation
    passed: bool
    detail: str
    rows: tuple[str, ...] = ()
    """Lines with values of records: the first that break an expectation; where another engine differs, the
    first rows with both sides and the records behind them."""


@dataclass(frozen=True, kw_only=True)
class Excuse:
    """An approver's reason to go live with what another engine cannot evaluate, and what that was."""

    reason: str
    by: str
    refused: str
    why: str

    @classmethod
    def of(cls, found: Said, reason: str, by: str) -> Excuse:
        return cls(reason=reason, by=by, refused=found.refused, why=found.why)

    def covers(self, found: Said) -> bool:
        """Whether this very thing is refused: a reason that was given for another is none."""
        return found.is_refused and (found.refused, found.why) == (self.refused, self.why)


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The answer for one plan; it passes when every check does."""

    plan: str
    at: str
    checks: tuple[Check, ...]
    asked_of: dict[str, list[Any]] = field(default_factory=dict)
    """By table: the version and the position of which its contract was asked."""
    excused: dict[str, Excuse] = field(default_factory=dict)
    """Tables that may go live although no other engine can evaluate them; by `topic NAME`, topics whose
    ingest none has witnessed."""

    @property
    def passed(self) -> bool:
        return all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    def to_json(self) -> dict[str, Any]:
        return {**to_json(asdict(self)), "passed": self.passed}

    def without_rows(self) -> dict[str, Any]:
        """The same for who may not see values of records: of each check `hidden_rows`, how many there are."""
        found = self.to_json()
        hidden = [{**one, "rows": [], "hidden_rows": len(one["rows"])} for one in found["checks"]]
        return {**found, "checks": hidden}


def production_check(plan: Plan, live: Release | None) -> Check:
    """The release that the plan was made against is still the live one, or the plan is live itself."""
    if live and live.plan == plan.id:
        return Check(table="", name="production", passed=True, detail=f"it is live: release {live.number}")
    now = live.number if live else None
    words = [f"release {number}" if number else "no release" for number in (plan.release_before, now)]
    same = now == plan.release_before
    detail = f"planned against {words[0]}, now {words[1]} is live"
    if same:
        detail = f"{words[1]} is live, as in the plan"
    return Check(table="", name="production", passed=same, detail=detail)


def certificate_check(version: Version, certificate: Certificate | None, age_seconds: float) -> Check:
    """Green's newest certificate over all of it exists, is equal, and is of a recent position."""
    table, name = version.table, "certificate"
    if certificate is None:
        detail = f"there is none: run `twinlake verify {table} --version {version.name}`"
        return Check(table=table, name=name, passed=False, detail=detail)
    place = batches_text(certificate.position)
    if not certificate.equal:
        detail = f"{certificate.found} at {place}" + (f": {certificate.why}" if certificate.raises else "")
        return Check(table=table, name=name, passed=False, detail=detail)
    detail = f"equal at {place}, {certificate.rows_compared:,} rows compared, {age_seconds:.0f} s old"
    if not certificate.is_whole:
        detail += f", {certificate.covers}"
    recent = is_recent(age_seconds)
    if not recent:
        detail += f"; 0 to {MAX_CERTIFICATE_AGE_SECONDS:.0f} s are allowed"
    return Check(table=table, name=name, passed=recent, detail=detail)


def witness_check(version: Version, certificate: Certificate, policy: str, excuse: Excuse | None) -> Check:
    """What another engine makes of the log; whether that decides is a matter of `[proof] witness`.

    An answer of another position than the certificate's does not pass where it is required.

    Nothing excuses a difference, nor an engine that gave no answer, nor another refusal than the one for
    which the reason was given.
    """
    found, answer = certificate.witness, certificate.witness.answer if certificate.witness else None
    detail = found.words(certificate.position) if found else "no other engine has been asked"
    passed = found is not None and found.answer.is_equal and found.position == certificate.position
    passed, detail = _decided(version.table, answer, passed, detail, policy, excuse)
    rows = tuple(lines(answer, MOST_ROWS, is_live=False)) if answer else ()
    return Check(table=version.table, name="witness", passed=passed, detail=detail, rows=rows)


def ingest_check(certificate: TopicCertificate, policy: str, excuse: Excuse | None) -> Check:
    """What a second decoder and evaluator of contracts makes of a topic's records; decided as by
    `witness_check`."""
    answer, topic = certificate.answer, certificate.topic
    passed, detail = _decided(topic, answer, answer.is_equal, certificate.words, policy, excuse)
    return Check(table=topic, name="ingest", passed=passed, detail=detail)


def _decided(
    name: str, answer: Said | None, passed: bool, detail: str, policy: str, excuse: Excuse | None
) -> tuple[bool, str]:
    """Whether an answer about a table or topic lets a release go live, in words that say what may be done."""
    if answer is not None and excuse is not None and excuse.covers(answer):
        return True, f"{detail}; accepted by {excuse.by}: {excuse.reason}"
    if policy != WITNESS_REQUIRED:
        return True, detail if passed else f"{detail}; it is reported, and blocks nothing"
    if answer is not None and answer.is_refused:
        detail += f"; to go live with it, add --unwitnessed '{name}=REASON'"
    return passed, detail


def is_recent(age_seconds: float) -> bool:
    """Not too old, and not of the future: a clock that went back says nothing about an age."""
    return 0 <= age_seconds <= MAX_CERTIFICATE_AGE_SECONDS


def lag_check(health: Health, limit: float = MAX_LAG_SECONDS) -> Check:
    """Green follows its log: not stalled, and no further behind than `limit` seconds."""
    detail, passed = "it reads its logs, and has no lag", True
    if health.lag_seconds is not None:
        detail = f"{health.lag_seconds:.1f} s behind the log, {limit:g} s are allowed"
        passed = health.lag_seconds <= limit
    elif health.error is not None:  # so early that it is not known how far it is
        detail = health.error["what"]
    if health.stalled:
        detail, passed = f"the version is stalled; {detail}", False
    return Check(table=health.table, name="lag", passed=passed, detail=detail)


def columns_check(kind: Kind, contract: Contract, types: Mapping[str, str]) -> Check:
    """The view has every column that the contract promises, with the promised type, and no other.

    `types` are the view's columns and their Spark types.
    """
    wrong = [
        f"{column.name} is {types.get(column.name, 'missing')}, promised {column.type}"
        for column in contract.columns
        if types.get(column.name) != column.type
    ]
    extra = [
        f"{name} is not in the contract"
        for name in types
        if contract.column(name) is None and name not in kind.implied
    ]
    detail = "; ".join([*wrong, *extra]) or f"{len(contract.columns)} columns as promised"
    return Check(table=kind.name, name="columns", passed=not (wrong or extra), detail=detail)
