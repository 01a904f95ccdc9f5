"""Owns change data: what Debezium's envelopes of one table's changes say, and what tells two of them apart.

An envelope is sent again when its connector starts again. What is then the same, and nothing else, is its
identity: the class of its operation, the source's position and snapshot flag, the record's key, and the rows.
Only the position would be too little: all rows of a snapshot have the same one, and an incremental snapshot
reads a row again that may have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from twinlake.base import quote
from twinlake.topics.contract import Column, Contract
from twinlake.topics.json_sql import YEARS
from twinlake.topics.spark_type import Struct, parse
from twinlake.topics.verdict import MISSING, NOT_ALLOWED, TIME_OUT_OF_RANGE, UNAVAILABLE_VALUE, reason

POSITIONS = {
    "postgresql": {"lsn": "bigint", "txId": "bigint"},
    "mysql": {"file": "string", "pos": "bigint", "row": "int"},
}
"""Database -> the fields of `source` that say where in its log a change was, and their types."""
DATABASES = tuple(POSITIONS)
SOURCE = "source"
EVENT_TIME = f"{SOURCE}.ts_ms"
"""When the database made the change. The envelope's own `ts_ms` is when the connector saw it: by that nothing
would be late that waited in the database's log."""
ROWS = ("before", "after")
FIELDS = ("op", SOURCE, *ROWS)
"""The fields of an envelope that its identity and its rules are made of."""
OPERATIONS = ("r", "c", "u", "d", "t")
"""A snapshot's row, create, update, delete, truncate. Messages have a topic of their own, like heartbeats."""
_SOURCE = {"ts_ms": "bigint", "snapshot": "string"}
_MAY_LACK = ("txId",)
_AS_TEXT = "map('ignoreNullFields', 'false', 'timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS')"
_UNAVAILABLE = ('"__debezium_unavailable_value"', '"X19kZWJleml1bV91bmF2YWlsYWJsZV92YWx1ZQ=="')
"""What Debezium writes for a large value that the database did not log, as JSON: as text, and as bytes."""
_NEEDED_BY = {"before": "'d'", "after": "'r', 'c', 'u'"}


def misfit(columns: Sequence[Column], database: str) -> tuple[str, str] | None:
    """(path in the contract, why) of the first thing that its properties lack to be such envelopes."""
    places = {column.name: (index, column.type) for index, column in enumerate(columns)}
    for name in FIELDS:
        if name not in places:
            return "schema[0].properties", f"{name!r} is missing, which every envelope of Debezium has"
    paths = {name: f"schema[0].properties[{index}].physicalType" for name, (index, _) in places.items()}
    types = {name: parse(type_) for name, (_, type_) in places.items()}
    if places["op"][1] != "string":
        return paths["op"], f"it is {places['op'][1]}, and Debezium writes text"
    for name in ("source", *ROWS):
        if not isinstance(types[name], Struct):
            return paths[name], f"it is {places[name][1]}, and Debezium writes an object"
    if types["before"] != types["after"]:
        return paths["after"], "it has other fields than 'before': both are rows of one table"
    source = types["source"]
    assert isinstance(source, Struct)  # held by the loop above
    there = dict(source.fields)
    for name, type_ in {**_SOURCE, **POSITIONS[database]}.items():
        if name not in there:
            return paths["source"], f"it has no {name!r}, and {database} says by it which change this is"
        if there[name] != parse(type_):
            return paths["source"], f"its {name!r} must be {type_}"
    return None


def identity(contract: Contract, column: Callable[[str], str], key: str) -> str:
    """SQL of a text that two records share only where one is the other's redelivery; never NULL.

    `column` gives the SQL of an envelope's field, `key` is that of the record's key.
    """
    op, source = column("op"), column("source")
    fields = ("snapshot", *POSITIONS[contract.change_data or ""])
    parts = {
        # a snapshot reads at a position that a change may have, too
        "class": f"CASE WHEN {op} IN ('c', 'u', 'd') THEN 'change' ELSE {op} END",
        **{name: f"{source}.{quote.name(name)}" for name in fields},
        "key": f"hex(CAST({key} AS binary))",
        **{name: column(name) for name in ROWS},
    }
    struct = ", ".join(f"'{name}', {sql}" for name, sql in parts.items())
    return f"to_json(named_struct({struct}), {_AS_TEXT})"  # a hash would pass over NULLs, and see none moved


def broken(contract: Contract, column: Callable[[str], str]) -> dict[str, str]:
    """By reason, SQL that is TRUE where an envelope is not what Debezium's are, or lacks a row's values."""
    op, source = column("op"), column("source")
    low, high = (micros // 1000 for micros in YEARS["timestamp"])
    named = ", ".join(f"'{name}'" for name in OPERATIONS)
    found = {
        reason(MISSING, "op"): f"{op} IS NULL",
        reason(NOT_ALLOWED, "op"): f"{op} NOT IN ({named})",
        **{reason(MISSING, f"source.{name}"): f"{source}.{name} IS NULL" for name in _SOURCE},
        reason(TIME_OUT_OF_RANGE, EVENT_TIME): f"{source}.ts_ms NOT BETWEEN {low} AND {high}",
    }
    for name in POSITIONS[contract.change_data or ""]:
        if name not in _MAY_LACK:  # without a place a row that is read again would be a redelivery
            found[reason(MISSING, f"source.{name}")] = f"{source}.{quote.name(name)} IS NULL"
    for name in ROWS:
        found[reason(MISSING, name)] = f"{op} IN ({_NEEDED_BY[name]}) AND {column(name)} IS NULL"
        text = f"to_json({column(name)})"
        lacks = " OR ".join(f"contains({text}, {quote.string(value)})" for value in _UNAVAILABLE)
        found[reason(UNAVAILABLE_VALUE, name)] = lacks
    own = {rule.reason for rule in contract.rules}
    return {why: f"coalesce({sql}, false)" for why, sql in found.items() if why not in own}


def event_micros(source: str) -> str:
    """SQL of the event time in microseconds; NULL outside the years 1 to 9999."""
    low, high = (micros // 1000 for micros in YEARS["timestamp"])
    return f"CASE WHEN {source}.ts_ms BETWEEN {low} AND {high} THEN {source}.ts_ms * 1000L END"


def whole_snapshot(database: str) -> tuple[str, str]:
    """SQL over an envelope's fields: what all records of one complete snapshot have in common, as text (NULL
    for every other record), and whether a record ends it."""
    fields = (name for name in POSITIONS[database] if name not in _MAY_LACK)
    place = ", ".join(f"source.{quote.name(name)}" for name in fields)
    # of several tables the first and last row of each are called after the table
    names = ("first", "first_in_data_collection", "true", "last_in_data_collection", "last")
    flags = ", ".join(f"'{name}'" for name in names)
    whole = f"CASE WHEN op = 'r' AND source.snapshot IN ({flags}) THEN concat_ws('/', {place}) END"
    return whole, "source.snapshot IN ('last_in_data_collection', 'last')"


def place(database: str) -> tuple[str, str]:
    """SQL over an envelope's fields: which log of a database it names, as text, and where in that it was."""
    if database == "postgresql":
        return "'lsn'", "source.lsn"
    # the files are binlog.000001 and so on; beyond 999999 their names have one digit more
    number = "try_cast(regexp_extract(source.file, '[0-9]+$', 0) AS BIGINT)"
    log = "regexp_replace(source.file, '[0-9]+$', '')"
    return log, f"named_struct('file', {number}, 'pos', source.pos, 'row', source.row)"
