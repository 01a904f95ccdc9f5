"""Owns what the witness of ingest is asked and answers, as JSON and as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from twinlake.witness.answer import DIFFERS, EQUAL, NOT_WITNESSED, Said
from twinlake.witness.question import Field


@dataclass(frozen=True, kw_only=True)
class Era:
    """The batches after `after`, up to the next era's: validated by this contract, read by these fields."""

    after: int
    contract: Mapping[str, Any]
    fields: tuple[Field, ...]

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Era:
        return cls(
            after=data["after"], contract=data["contract"], fields=tuple(map(Field.from_json, data["fields"]))
        )


@dataclass(frozen=True, kw_only=True)
class TopicQuestion:
    """Does a second decoder find, of a drawn sample, what ingest has written into a topic's log?"""

    topic: str
    eras: tuple[Era, ...]
    """In order. Batches before the first are not asked about: nobody knows what was active."""
    schemas: Mapping[str, Mapping[str, Any]]
    """By id, as text, what the registry has."""
    files: tuple[str, ...]
    """As of `witness.question.TopicLog`, as are the next three."""
    position: int
    event: Mapping[str, str]
    met: Mapping[str, tuple[str, ...]]
    seed: int
    """It draws the sample, from 1 on: the same seed draws the same records of the same log."""
    size: int
    """So many of all records are drawn, and a quarter as many of each verdict that is not `valid`."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TopicQuestion:
        """The inverse of `to_json`."""
        met = {schema_id: tuple(names) for schema_id, names in data["met"].items()}
        eras = tuple(map(Era.from_json, data["eras"]))
        return cls(**{**data, "eras": eras, "files": tuple(data["files"]), "met": met})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RecordDifference:
    """A record that differs; values as text, only of the fields that differ."""

    record: str
    """epoch/partition/offset."""
    witness: Mapping[str, str]
    """`verdict` with its reasons, and fields as `event.NAME`."""
    log: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class TopicAnswer(Said):
    """What was found of one topic."""

    topic: str
    engine: str = ""
    seed: int = 0
    """0 where the witness was not asked."""
    sampled: int = 0
    """Records that were drawn."""
    compared: int = 0
    differing: int = 0
    differences: tuple[RecordDifference, ...] = ()
    """The first of them in the order of the log."""
    unsure: Mapping[str, int] = field(default_factory=dict)
    """By reason, how many records were drawn of which nothing is said."""
    records: int = 0
    """Of which they were drawn."""
    before: int = 0
    """Records of which nobody knows any more by which contract they were validated."""
    cpu_s: float = 0.0

    @property
    def words(self) -> str:
        """For a person."""
        drawn = f"{self.compared:,} of {self.records:,} records, seed {self.seed}"
        if left := sum(self.unsure.values()):
            drawn += f"; of {left:,} more it says nothing: {', '.join(sorted(self.unsure))}"
        if self.before:
            drawn += f"; {self.before:,} older ones were validated before it was kept by which contract"
        if self.verdict == EQUAL:
            return f"ingest = {self.engine} ({drawn})"
        if self.verdict == DIFFERS:
            first = self.differences[0]
            named = ", ".join(f"{name} {first.log[name]}, not {first.witness[name]}" for name in first.log)
            return (
                f"{self.engine} differs from ingest in {self.differing:,} of {drawn}; "
                f"record {first.record} has {named}"
            )
        if self.verdict == NOT_WITNESSED:
            return f"ingest is not witnessed because {self.why}"
        return f"the witness of ingest failed: {self.why}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> TopicAnswer:
        """The inverse of `to_json`."""
        differences = tuple(RecordDifference(**one) for one in data["differences"])
        return cls(**{**data, "differences": differences})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
