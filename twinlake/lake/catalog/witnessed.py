"""Witnessed: what another engine has found of a version, as its certificate keeps it and people read it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from twinlake.base.job import batches_text
from twinlake.witness.answer import DIFFERS, EQUAL, FAILED, NOT_WITNESSED, Answer

ANSWERS = (EQUAL, DIFFERS, NOT_WITNESSED, FAILED)
"""What a witness may say, of a version or of a topic."""


@dataclass(frozen=True, kw_only=True)
class Witnessed:
    """Whether the rows that a version showed at `position` are what another engine makes of the logs."""

    answer: Answer
    position: dict[str, int]
    at: str

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Witnessed | None:
        """The inverse of `to_json`; None for None."""
        return cls(**{**data, "answer": Answer.from_json(data["answer"])}) if data else None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def short(self) -> Witnessed:
        """Without the rows that differ: those are kept once, with the certificate that was made then."""
        final, late = (
            found and replace(found, differences=()) for found in (self.answer.final, self.answer.late)
        )
        return replace(self, answer=replace(self.answer, differences=(), final=final, late=late))

    def words(self, position: Mapping[str, int], agree: bool = True) -> str:
        """The answer beside a certificate of this position, in which speed and batch agree or do not."""
        found = self.answer.words
        if not agree:
            found = f"what the table shows: {found}"
        elif self.answer.is_equal:
            found = found.replace("equal by", "speed = batch =", 1)
        elif self.answer.is_refused:
            found = f"speed = batch, {found}"
        return found if dict(position) == self.position else f"{found}, at {self.place}"

    @property
    def clock_lines(self) -> list[str]:
        """What follows the clocks of the log, each compared by itself: no part of the answer."""
        asked = {"final": self.answer.final, "late records": self.answer.late}
        return [f"{name}: {found.words}" for name, found in asked.items() if found is not None]

    @property
    def place(self) -> str:
        return f"{batches_text(self.position)} on {self.at}"
