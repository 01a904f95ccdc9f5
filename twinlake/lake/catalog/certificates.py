"""Certificate: the stored result of comparing speed with batch at one position, and where they are kept."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import pyarrow as pa

from twinlake.base.job import batches_text
from twinlake.base.location import Location
from twinlake.kinds.windows import ALL, Windows
from twinlake.lake.catalog.topic_certificates import TopicCertificates
from twinlake.lake.catalog.witnessed import Witnessed
from twinlake.lake.delta.ledger import Ledger

Work = Literal["verify", "rebuild"]
SHOWN = 100
"""At most this many differing keys are kept with both sides; all of them are counted."""


RAISES = "raises"
"""The cause of a difference that is none: a version of a view kind could not be read at all."""


@dataclass(frozen=True, kw_only=True)
class Base:
    """What a certificate goes on from: an equal one of `position`, which together with those that it goes on
    from says that all of history was equal. All of it at once was last compared at `whole_position`."""

    certificate: str
    position: dict[str, int]
    whole_position: dict[str, int]
    whole_at: str
    evidence: dict[str, int]
    """What all rows of the version had counted then (`batch/verify.py`); of a verify only."""


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """`speed` is what the table showed, `batch` what the same definition yields from the log alone.

    It covers all of history: alone where `windows` are all, or composed, where `base` is an earlier one and
    `windows` are at least those for which the log has gained records since. Otherwise just `windows`.
    """

    id: str
    job: str
    kind: Work
    table: str
    version: str
    fingerprint: str
    position: dict[str, int]
    delta_version: int | None
    step: int | None
    through_segment: int | None
    windows: list[dict[str, str | None]]
    rows_compared: int
    differing: int
    equal: bool
    differences: list[dict[str, Any]] = field(default_factory=list)
    created_at: str = ""
    base: Base | None = None
    evidence: dict[str, int] = field(default_factory=dict)
    witness: Witnessed | None = None
    """What another engine has found; of an earlier position where this comparison did not ask it."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """The inverse of `to_json`."""
        base = data["base"] and Base(**data["base"])
        witness = Witnessed.from_json(data.get("witness"))
        return cls(**{**data, "base": base, "witness": witness})

    @property
    def is_whole(self) -> bool:
        """Whether it compared all of history itself."""
        return self.windows == ALL.to_json()

    @property
    def covers_all(self) -> bool:
        return self.is_whole or self.base is not None

    @property
    def as_base(self) -> Base:
        """For the next one, which goes on from this."""
        at, made_at = self.position, self.created_at
        if self.base is not None:
            at, made_at = self.base.whole_position, self.base.whole_at
        return Base(
            certificate=self.id, position=self.position, whole_position=at, whole_at=made_at,
            evidence=self.evidence,
        )  # fmt: skip

    @property
    def covers(self) -> str:
        """What it covers, in words."""
        if self.is_whole:
            return "all of history"
        if self.base:
            since, whole = batches_text(self.base.position), batches_text(self.base.whole_position)
            what = "windows with new records" if self.windows else "the count of records"
            return f"all of history: {what} since {since}, on top of all that came up to {whole}"
        return Windows.from_json(self.windows).words

    @property
    def raises(self) -> bool:
        """Whether an expression raised, so that nothing was compared."""
        return any(found.get("cause") == RAISES for found in self.differences)

    @property
    def found(self) -> str:
        """What is wrong, in words; nothing of an equal one."""
        if self.equal:
            return ""
        return "it cannot be read" if self.raises else f"speed and batch differ in {self.differing} keys"

    @property
    def why(self) -> str:
        """The causes, in words."""
        return "; ".join(sorted({found["why"] for found in self.differences}))

    @property
    def proof(self) -> str:
        """Which engines agree, in words; nothing where no other one was asked."""
        return self.witness.words(self.position, self.equal) if self.witness else ""

    @property
    def clocks(self) -> list[str]:
        """Beside `proof`, what the other engine found of what follows the clocks of the log."""
        return self.witness.clock_lines if self.proof and self.witness else []

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def with_outcome(self, found: Outcome) -> Certificate:
        """The certificate of this comparison."""
        return replace(
            self, rows_compared=found.rows_compared, differing=found.differing, equal=found.equal,
            differences=list(found.differences),
        )  # fmt: skip

    def summary(self) -> dict[str, Any]:
        """Without the differing rows themselves; in words what it covers and, if anything, raises."""
        # to copy them takes longer than all the rest
        data = asdict(replace(self, differences=[], witness=self.witness and self.witness.short))
        del data["differences"]
        return {
            **data, "covers": self.covers, "raises": self.why if self.raises else None, "proof": self.proof,
            "disputed": self.witness is not None and self.witness.answer.is_wrong,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one comparison found; `differences` are the first SHOWN of `differing` keys, as JSON."""

    rows_compared: int
    differing: int
    differences: tuple[dict[str, Any], ...] = ()

    @property
    def equal(self) -> bool:
        return self.differing == 0

    def __add__(self, other: Outcome) -> Outcome:
        """Two comparisons of different rows, reported as one."""
        return Outcome(
            rows_compared=self.rows_compared + other.rows_compared,
            differing=self.differing + other.differing,
            differences=(*self.differences, *other.differences)[:SHOWN],
        )


NOTHING = Outcome(rows_compared=0, differing=0)
"""What has been found before anything is compared."""

SCHEMA = pa.schema(
    [
        *[
            (name, pa.string())
            for name in ("id", "job", "kind", "table", "version", "fingerprint", "position")
        ],
        *[(name, pa.int64()) for name in ("delta_version", "step", "through_segment")],
        ("windows", pa.string()),
        *[(name, pa.int64()) for name in ("rows_compared", "differing")],
        ("equal", pa.bool_()),
        ("differences", pa.string()),
        ("created_at", pa.string()),
        ("base", pa.string()),
        ("evidence", pa.string()),
        ("sequence", pa.int64()),
        ("witness", pa.string()),
    ]
)
_NESTED = ("position", "windows", "differences", "base", "evidence", "witness")
KEEP = 10_000


def _ledger(lake: Location) -> Ledger:
    return Ledger(lake / "certificates", SCHEMA)


def gain_columns(lake: Location) -> None:
    """Takes the certificates of a lake of before on: they say nothing of another engine."""
    _ledger(lake).gain_columns()


class Certificates:
    """`<lake>/certificates`, and the newest of each version in memory, by sequence and never by a clock."""

    def __init__(self, lake: Location) -> None:
        self.topics = TopicCertificates(lake)
        """Beside those of versions."""
        self._ledger = _ledger(lake)
        self._lock = threading.Lock()
        self._newest: dict[tuple[str, str], Certificate] = {}
        self._bases: dict[tuple[str, str, Work], Certificate] = {}
        self._sequence = 0
        for row in sorted(self._ledger.rows(), key=lambda row: row["sequence"]):
            self._sequence = row["sequence"]
            self._remember(_of_row(row))
        self._bases.clear()

    def add(self, certificate: Certificate) -> Certificate:
        row = asdict(certificate)
        row |= {name: json.dumps(row[name]) for name in _NESTED}
        with self._lock:
            self._sequence += 1
            self._ledger.append([{**row, "sequence": self._sequence}])
            self._remember(certificate)
        return certificate

    def newest(self, table: str, version: str) -> Certificate | None:
        """The last certificate that covers all of a version; another one only if it found a difference."""
        with self._lock:
            return self._newest.get((table, version))

    def of(self, table: str, limit: int) -> list[Certificate]:
        """So many of all versions of a table, the newest first; read from disk."""
        rows = sorted(self._ledger.rows(table=table), key=lambda row: row["sequence"], reverse=True)
        return [_of_row(row) for row in rows[:limit]]

    def base(self, table: str, version: str, kind: Work) -> Certificate | None:
        """The last equal one that covers all of a version and was made by such work since the server's start.

        Nothing goes on from one of before: other code, another Spark or a new schema's defaults may have come
        with the start, and with them another batch result of old records.
        """
        with self._lock:
            return self._bases.get((table, version, kind))

    def compact(self) -> bool:
        """Now and then forgets the older ones, but never the newest of a version."""
        with self._lock:
            newest = {certificate.id for certificate in self._newest.values()}
            return self._ledger.compact(
                lambda rows: [
                    row for row in rows
                    if row["id"] in newest or row["sequence"] > self._sequence - KEEP
                ]
            )  # fmt: skip

    def _remember(self, certificate: Certificate) -> None:
        key = (certificate.table, certificate.version)
        newest = self._newest.get(key)
        if certificate.equal and (not certificate.covers_all or (newest and _stands(newest, certificate))):
            return
        if certificate.equal:
            self._bases[*key, certificate.kind] = certificate
            if certificate.kind == "rebuild" and certificate.base:
                return  # it says nothing of other windows; the verify after it adds up what all rows counted
        self._newest[key] = certificate


def _of_row(row: Mapping[str, Any]) -> Certificate:
    data = {**row, **{name: json.loads(row[name] or "null") for name in _NESTED}}
    del data["sequence"]
    return Certificate.from_json(data)


def _stands(newest: Certificate, equal: Certificate) -> bool:
    """Whether the newest one tells of a difference that stands beside this equal one.

    Only a look at all of history clears it, of the version as it was when the difference was found or later.
    """
    later = (equal.delta_version or 0) >= (newest.delta_version or 0)
    return not newest.equal and not (equal.is_whole and later)
