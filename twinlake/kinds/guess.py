"""Guesses what a topic's columns are good for: what its records are about, happened at, and amount to.

From names and types alone: a first definition is made of it, for a person to go on from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from twinlake.base import quote
from twinlake.kinds.equality import has_order, is_comparable, is_number
from twinlake.topics.topic import Topic

VIEWS_OWN = {
    "window_start", "window_end", "session_start", "session_end", "final", "last", "place",
    "valid_from", "valid_to", "is_current",
}  # fmt: skip
"""Columns that views of some kinds have by themselves."""
_WORDS = re.compile(
    "(all|anti|any|array|as|between|both|case|cast|cross|current_\\w+|distinct|else|end|except|exists|extract|"
    "false|filter|for|from|full|group|having|if|in|inner|intersect|interval|into|is|join|lateral|leading|left|"
    "like|map|minus|natural|not|null|on|or|and|order|outer|overlaps|right|select|semi|session_user|some|struct|"
    "table|then|trailing|true|union|unique|using|when|where|with)",
    re.IGNORECASE,
)
"""Names that are quoted in SQL: not all need it, and none is worse for it."""


@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a first definition makes of a topic's columns, each by its name in the table."""

    topic: str
    columns: Mapping[str, str]
    """Name -> SQL, of those that can be compared."""
    types: Mapping[str, str]
    keys: tuple[str, ...]
    unique: str | None
    time: str
    change_data: str | None

    def only(self, *names: str | None) -> dict[str, str]:
        """These of the columns, with their SQL."""
        return {name: self.columns[name] for name in names if name is not None}


def rows_of(topic: Topic) -> Rows:
    """The columns of a topic under names that tables can have."""
    contract = topic.contract
    columns, types = dict[str, str](), dict[str, str]()
    named: dict[str, str] = {}
    for field in topic.newest.fields:
        if is_comparable(field.type):
            name = free_name(field.name, columns, topic.name)
            columns[name], types[name], named[field.name] = sql_name(field.name), field.type, name
    time = named.get(contract.event_time or "")
    if time is None:  # of change data: a field of a field
        time = free_name("changed_at", columns, topic.name)
        columns[time], types[time] = "timestamp_millis(source.ts_ms)", "timestamp"
    return Rows(
        topic=topic.name, columns=columns, types=types, time=time, change_data=contract.change_data,
        keys=tuple(named[key] for key in contract.keys if key in named),
        unique=named.get(contract.unique or ""),
    )  # fmt: skip


def free_name(name: str, taken: Iterable[str], topic: str) -> str:
    """A column's name in a table: states use `__` themselves, views some names."""
    found = re.sub("__+", "_", name)
    if found.lower() in VIEWS_OWN:
        found = re.sub("__+", "_", f"{topic}_{found}")
    used = {one.lower() for one in taken}
    while found.lower() in used:
        found += "_2"
    return found


def sql_name(name: str) -> str:
    """A column in an expression: with quotes where it would be read as something else."""
    return quote.name(name) if _WORDS.fullmatch(name) else name


def group(rows: Rows) -> str | None:
    """What records are grouped by first: a key, else a text."""
    fit = [one for one in rows.columns if can_be_key(rows, one)]
    texts = [one for one in fit if rows.types[one] == "string"]
    return next(iter((*rows.keys, *texts, *fit)), None)


def entity(rows: Rows) -> str | None:
    """What records are about: a key, else what is called an id."""
    ids = (one for one in rows.columns if can_be_key(rows, one) and is_id(one))
    return next(iter((*rows.keys, *ids)), None)


def amount(rows: Rows) -> str | None:
    """What is worth adding up: a number with digits behind the point, else one that is no id."""
    numbers = [one for one in rows.columns if is_number(rows.types[one]) and not is_id(one)]
    numbers = [one for one in numbers if one != rows.unique and one not in rows.keys]
    return next(iter(sorted(numbers, key=lambda one: rows.types[one] in ("int", "bigint"))), None)


def can_be_key(rows: Rows, name: str) -> bool:
    """Whether rows are grouped or joined by the column: it is no time, no amount, not the event's own id."""
    type_ = rows.types[name]
    plain = has_order(type_) and type_ not in ("float", "double", "timestamp") and "<" not in type_
    return plain and name != rows.unique and name != amount(rows)


def is_id(name: str) -> bool:
    """Whether it is called one, like `user_id` and `userId`."""
    return bool(re.search(r"(^id|_id|Id|ID)$", name))
