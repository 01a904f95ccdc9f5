"""Disputed: a row in which another engine differs, for people: key, both sides, records, what to ask."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from twinlake.witness.answer import LONGEST, Answer, Difference


def disputed(answer: Answer) -> list[dict[str, Any]]:
    """The differences of an answer as JSON, each with `explain`, the command that goes on from there."""
    return [{**asdict(one), "explain": explain(answer.table, one)} for one in answer.differences]


def lines(answer: Answer, most: int | None = None, is_live: bool = True) -> list[str]:
    """The same for a person, indented below what they belong to; at most so many rows. The command asks
    the live release, so it is that of a live version and of a row that it shows."""
    shown = answer.differences[:most]
    found = [line for one in shown for line in _of_row(answer, one, is_live)]
    if more := answer.differing - len(shown):
        found.append(f"and {more:,} more rows")
    return found if shown else []


def explain(table: str, row: Difference) -> str:
    """The command that shows what the live release makes the row of; none for a key that was cut."""
    if any(value is not None and len(value) >= LONGEST for value in row.key.values()):
        return ""
    keys = (name if value is None else f"{name}={value}" for name, value in row.key.items())
    return shlex.join(["twinlake", "explain", table, *(part for key in keys for part in ("--key", key))])


def _of_row(answer: Answer, row: Difference, is_live: bool) -> list[str]:
    sides = {answer.engine.split(" ")[0] or "the witness": row.witness, "shown": row.shown}
    found = [_pairs(row.key) or "the only row"]
    found += [f"  {name}: {_side(values, row.columns)}" for name, values in sides.items()]
    if row.behind is not None:
        found.append(f"  records: {row.behind.words}")
    command = explain(answer.table, row) if is_live and row.shown is not None else ""
    return found + ([f"  {command}"] if command else [])


def _side(values: Mapping[str, str | None] | None, columns: Sequence[str]) -> str:
    """What differs, or all of a row that the other side lacks."""
    if values is None:
        return "no such row"
    return _pairs({name: values[name] for name in columns or values})


def _pairs(values: Mapping[str, str | None]) -> str:
    return ", ".join(f"{name}={'NULL' if value is None else value}" for name, value in values.items())
