"""Owns what the witness says: equal, different, or why it cannot say; as JSON and as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

EQUAL: Literal["equal"] = "equal"
DIFFERS: Literal["differs"] = "differs"
NOT_WITNESSED: Literal["not_witnessed"] = "not_witnessed"
FAILED: Literal["failed"] = "failed"
Verdict = Literal["equal", "differs", "not_witnessed", "failed"]
"""`not_witnessed`: it is known why the question has no answer. `failed`: the witness crashed."""
GONE = "a file of the log is gone"
"""Why, where a file of the question was deleted meanwhile; a new question names others."""
MOST = 20
"""So many differing rows are shown; all of them are counted."""
LONGEST = 500
"""Characters that are shown of a value that differs, and of an error."""
MOST_RECORDS = 10
"""So many records of each of those are listed; all of them are counted."""


@dataclass(frozen=True, kw_only=True)
class Said:
    """What every answer has, whatever was asked."""

    verdict: Verdict
    why: str = ""
    """Why it is not witnessed, or how it failed."""
    refused: str = ""
    """Of one that is not witnessed for what the definition says: the expression, or kind; not for a limit."""

    @property
    def is_equal(self) -> bool:
        return self.verdict == EQUAL

    @property
    def is_refused(self) -> bool:
        """Whether the witness says why it cannot tell; an approver may go on without it."""
        return self.verdict == NOT_WITNESSED

    @property
    def is_gone(self) -> bool:
        """Whether it may be asked again: a file was deleted meanwhile."""
        return self.is_refused and self.why == GONE

    @property
    def has_failed(self) -> bool:
        return self.verdict == FAILED

    @property
    def is_wrong(self) -> bool:
        """Whether somebody has to look: it differs, or the witness did not end as it should."""
        return self.verdict in (DIFFERS, FAILED)


@dataclass(frozen=True, kw_only=True)
class RecordId:
    """Where a record lies in Kafka."""

    topic: str
    epoch: int
    partition: int
    offset: int


@dataclass(frozen=True, kw_only=True)
class Behind:
    """The records that a row of a key is made of, or by `why` what keeps them from being listed."""

    records: tuple[RecordId, ...] = ()
    """The first MOST_RECORDS of them by record id; of the latest row of a key the last ones."""
    count: int = 0
    why: str = ""

    @property
    def words(self) -> str:
        """For a person: epoch/partition/offset of each."""
        if self.why:
            return f"not listed: {self.why}"
        of: dict[str, list[str]] = {}
        for one in self.records:
            of.setdefault(one.topic, []).append(f"{one.epoch}/{one.partition}/{one.offset}")
        listed = "; ".join(f"{topic} {', '.join(ids)}" for topic, ids in of.items())
        more = self.count - len(self.records)
        return f"{listed} and {more:,} more" if more else listed or "no record of the log has this key"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Behind:
        return cls(**{**data, "records": tuple(RecordId(**one) for one in data["records"])})


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A row that differs, values as text, times of the key in RFC 3339; a side that lacks it is None."""

    key: Mapping[str, str | None]
    columns: tuple[str, ...]
    """Those that differ; none where a side is missing."""
    witness: Mapping[str, str | None] | None
    shown: Mapping[str, str | None] | None
    behind: Behind | None = None
    """None in a certificate of before."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Difference:
        behind = data.get("behind") and Behind.from_json(data["behind"])
        return cls(**{**data, "columns": tuple(data["columns"]), "behind": behind})


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The outcome of one comparison of rows."""

    verdict: Verdict
    why: str = ""
    rows: int = 0
    """Rows that either side has."""
    differing: int = 0
    differences: tuple[Difference, ...] = ()
    """The first of them by key, at most MOST."""

    @property
    def words(self) -> str:
        """For a person."""
        if self.verdict == EQUAL:
            return f"equal ({self.rows:,} rows)"
        if self.verdict == DIFFERS:
            return f"different in {self.differing:,} of {self.rows:,} rows"
        return f"not witnessed because {self.why}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Compared:
        return cls(**{**data, "differences": tuple(map(Difference.from_json, data["differences"]))})


@dataclass(frozen=True, kw_only=True)
class Answer(Said):
    """What the witness found of one question."""

    table: str
    engine: str = ""
    """Such as "DuckDB 2.0.0"."""
    sql_hash: str = ""
    """sha256 over the statements that were run; the names of files are no part of it."""
    rows: int = 0
    differing: int = 0
    differences: tuple[Difference, ...] = ()
    bounds: Mapping[str, str] = field(default_factory=dict)
    """By column of what is approximate by its definition: how near it has to be."""
    within_bound: Mapping[str, int] = field(default_factory=dict)
    """By the same columns: how many of the values are not exactly the witness's, and near enough."""
    expressions_by_spark: bool = False
    """The logic is witnessed, and Spark has computed the row-local steps."""
    final: Compared | None = None
    """The columns that follow the clocks at the pin; no part of the verdict."""
    late: Compared | None = None
    """The view of what came late; no part of the verdict."""
    cpu_s: float = 0.0

    @property
    def words(self) -> str:
        """For a person."""
        if self.verdict == EQUAL:
            near = [name for name, count in self.within_bound.items() if count]
            bound = f", {', '.join(near)} within {'its' if len(near) == 1 else 'their'} bound" if near else ""
            by = "; expressions by Spark" if self.expressions_by_spark else ""
            return f"equal by {self.engine} ({self.rows:,} rows{bound}{by})"
        if self.verdict == DIFFERS:
            return f"{self.engine} differs in {self.differing:,} of {self.rows:,} rows"
        if self.verdict == NOT_WITNESSED:
            return f"not witnessed because {self.why}"
        return f"the witness failed: {self.why}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Answer:
        """The inverse of `to_json`."""
        lines = {name: data[name] and Compared.from_json(data[name]) for name in ("final", "late")}
        differences = tuple(map(Difference.from_json, data["differences"]))
        return cls(**{**data, **lines, "differences": differences})

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)
