"""Rights: which tables and columns a person reads, what they see masked, and which rows.

Who has none of these reads everything. They are part of the user's line, see `config/users.py`; the SQL
server holds every statement to them, see `java/twinlake/reading/Rights.java`.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from twinlake.base.errors import UsageError

MASKS = ("hash", "last4", "null")
"""From the weakest to the strongest: where several are meant, the last of them holds."""
ANY = "*"
"""Stands for every classification that a contract gives."""
_PATTERN = re.compile(r"(?:[\w*]+\.)?[\w*]+")
_COLUMN = re.compile(r"(\w+)\.(\w+)")
_CLASS = re.compile(r"\*|[^=.\s:]+")
_ROWS = re.compile(r"\s*(\w+)\s*:\s*(\S.*)", re.DOTALL)
LONGEST_CONDITION = 2_000


@dataclass(frozen=True, kw_only=True)
class Rights:
    """Of one person. A table's name stands for it in `serve`, in every release and AS OF alike; names are
    compared without case."""

    tables: tuple[str, ...] = (ANY,)
    """Patterns of `schema.table` or `table` with `*` in them: what is named is read, nothing else."""
    hidden: tuple[str, ...] = ()
    """`table.column` each, that are not there for this person."""
    masks: Mapping[str, str] = field(default_factory=dict)
    """By classification of a contract, by `*` for all of them, or by `table.column`: one of MASKS."""
    rows: Mapping[str, str] = field(default_factory=dict)
    """By table, the condition (SQL over its columns) of the rows that are there for this person."""

    def to_json(self) -> dict[str, Any]:
        """Without what is as it is for everybody."""
        found: dict[str, Any] = {}
        if self.tables != (ANY,):
            found["tables"] = list(self.tables)
        if self.hidden:
            found["hidden"] = list(self.hidden)
        if self.masks:
            found["masks"] = dict(self.masks)
        if self.rows:
            found["rows"] = dict(self.rows)
        return found

    @staticmethod
    def from_json(found: Any) -> Rights:
        """UsageError for what is not the form of `to_json`."""
        if not isinstance(found, dict) or found.keys() - {"tables", "hidden", "masks", "rows"}:
            raise UsageError("these are no rights", json.dumps(found)[:200], "see docs/rights.md")
        masks, rows = found.get("masks", {}), found.get("rows", {})
        tables, hidden = found.get("tables", [ANY]), found.get("hidden", [])
        texts = (*tables, *hidden, *masks, *rows)
        if not (
            isinstance(tables, list) and isinstance(hidden, list) and isinstance(masks, dict)
            and isinstance(rows, dict) and all(isinstance(one, str) for one in texts)
            and all(isinstance(one, str) for one in (*masks.values(), *rows.values()))
        ):  # fmt: skip
            raise UsageError("these are no rights", json.dumps(found)[:200], "see docs/rights.md")
        made = Rights(tables=tuple(tables), hidden=tuple(hidden), masks=masks, rows=rows)
        made.refuse_wrong()
        return made

    def refuse_wrong(self) -> None:
        """UsageError that names the part that means nothing."""
        for pattern in self.tables:
            _refuse(_PATTERN, pattern, "tables", "`table`, `schema.table`, with * for any letters")
        for column in self.hidden:
            _refuse(_COLUMN, column, "a hidden column", "`table.column`")
        for of, mask in self.masks.items():
            if not (_COLUMN.fullmatch(of) or _CLASS.fullmatch(of)):
                raise _wrong(of, "what is masked", "`table.column`, a classification of a contract, or *")
            if mask not in MASKS:
                raise _wrong(mask, "a mask", f"one of {', '.join(MASKS)}")
        for table, condition in self.rows.items():
            if not table.isidentifier():
                raise _wrong(table, "a table whose rows are chosen", "the table's name")
            if not condition.strip() or len(condition) > LONGEST_CONDITION or "\0" in condition:
                raise _wrong(
                    condition[:80], "a condition of rows", f"SQL of up to {LONGEST_CONDITION} characters"
                )


_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_SUBQUERY = re.compile(r"\(\s*(?:select|from|table|values|with)\b", re.IGNORECASE)
"""The SQL server refuses it, too, by the plan, and so whoever reads: it is better said before."""
ALL = Rights()
"""Of who reads everything."""


def unknown(rights: Rights, classes: Mapping[str, Mapping[str, Iterable[str]]]) -> tuple[str, ...]:
    """What `rights` name that stands for nothing among the columns of views and their classifications: a slip
    of the pen, or a table of the future."""
    known = {
        f"{view}.{column}".lower(): tuple(found)
        for view, columns in classes.items() for column, found in columns.items()
    }  # fmt: skip
    views = [view.lower() for view in classes]
    given = {one for found in known.values() for one in found} | {ANY}
    patterns = {one: one.lower().rpartition(".")[2] for one in rights.tables}
    columns = [*rights.hidden, *(one for one in rights.masks if _COLUMN.fullmatch(one))]
    return (
        *(one for one, name in patterns.items() if not fnmatch.filter(views, name)),
        *(one for one in columns if one.lower() not in known),
        *(one for one in rights.masks if not _COLUMN.fullmatch(one) and one not in given),
    )


def rights_of(
    tables: Iterable[str], hidden: Iterable[str], masks: Iterable[str], rows: Iterable[str]
) -> Rights:
    """Those of options: `WHAT=MASK` of each mask, `TABLE: CONDITION` of each choice of rows; UsageError for
    one that is neither."""
    named = tuple(tables)
    made = Rights(
        tables=named or (ANY,), hidden=tuple(hidden), masks=dict(_mask(one) for one in masks),
        rows=dict(_choice(one) for one in rows),
    )  # fmt: skip
    made.refuse_wrong()
    return made


def _mask(text: str) -> tuple[str, str]:
    of, parted, mask = text.partition("=")
    if not parted:
        raise _wrong(text, "a mask", "WHAT=MASK, such as confidential=hash or orders.customer=last4")
    return of.strip(), mask.strip()


def _choice(text: str) -> tuple[str, str]:
    if not (found := _ROWS.fullmatch(text)):
        raise _wrong(text, "a choice of rows", "TABLE: CONDITION, such as \"orders: region = 'bavaria'\"")
    if _SUBQUERY.search(_TEXT.sub("", found[2])):
        raise _wrong(found[2][:80], "a condition of rows", "SQL over the columns of its table alone")
    return found[1], found[2].strip()


def _refuse(form: re.Pattern[str], text: str, what: str, expected: str) -> None:
    if not form.fullmatch(text):
        raise _wrong(text, what, expected)


def _wrong(text: str, what: str, expected: str) -> UsageError:
    return UsageError(f"{text!r} cannot stand for {what}", f"it is {expected}", "see docs/rights.md")
