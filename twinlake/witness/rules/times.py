"""The family of times: fields, truncation, days added, zones. A timestamp is microseconds since 1970, UTC."""

from __future__ import annotations

import re

from twinlake.witness.rules.casts import SECOND_US, converted, rounded_down
from twinlake.witness.rules.coercion import to
from twinlake.witness.rules.term import Call, Function, Term, bind, cast
from twinlake.witness.types import (
    BIGINT,
    DATE,
    INT,
    INTEGERS,
    STRING,
    TIMESTAMP,
    UP_TO_INT,
    Type,
    text_literal,
)

_TIMES = ("date", "timestamp")
_FIELDS = {
    "year": "year({})", "quarter": "quarter({})", "month": "month({})", "day": "day({})",
    "dayofmonth": "day({})", "dayofyear": "dayofyear({})", "dayofweek": "dayofweek({}) + 1",
    "weekday": "isodow({}) - 1", "weekofyear": "weekofyear({})", "hour": "hour({})", "minute": "minute({})",
    "second": "second({})",
}  # fmt: skip
"""Function -> DuckDB's. Spark's Sunday is 1, and the weekday of Monday 0."""
_OF_TIMESTAMPS = ("hour", "minute", "second")
_PARTS = {
    "year": "year", "yyyy": "year", "yy": "year", "quarter": "quarter", "month": "month", "mon": "month",
    "mm": "month", "week": "week", "day": "day", "dd": "day", "hour": "hour", "minute": "minute",
    "second": "second", "millisecond": "milliseconds", "microsecond": "microseconds",
}  # fmt: skip
_OF_DATES = ("year", "quarter", "month", "week")
_PATTERN = re.compile(r"yyyy|MM|dd|HH|mm|ss|SSS|'[A-Za-z]+'|[^A-Za-z'\[\]{}#%]")
_FORMATS = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S", "SSS": "%g"}
_YEARS = "a time of other years than 1 to 9999"


def within_years(call: Call, sql: str, type_: Type) -> str:
    """The SQL of a time, with a guard: beyond the year 9999 neither engine's file has it alike."""
    first, last = (
        ("0001-01-01", "9999-12-31") if type_ == DATE else ("0001-01-01", "9999-12-31 23:59:59.999999")
    )
    low, high = cast(f"'{first}'", type_), cast(f"'{last}'", type_)
    return bind(
        [Term(sql=sql, type=type_)], lambda it: call.guarded(f"{it} NOT BETWEEN {low} AND {high}", it, _YEARS)
    )


def field(call: Call) -> Term:
    call.takes(1)
    if call.types[0] not in _TIMES:
        raise call.refused()
    term = to(call.terms[0], TIMESTAMP) if call.name in _OF_TIMESTAMPS else call.terms[0]
    return Term(sql=cast(_FIELDS[call.name].format(term.sql), INT), type=INT)


def last_day(call: Call) -> Term:
    call.takes(1)
    if call.types[0] not in _TIMES:
        raise call.refused()
    return Term(sql=cast(f"last_day({call.terms[0].sql})", DATE), type=DATE)


def truncated(call: Call) -> Term:
    """date_trunc('hour', timestamp) and trunc(date, 'month'); the part is written out."""
    call.takes(2)
    of_date = call.name == "trunc"
    term, index = (call.terms[0], 1) if of_date else (call.terms[1], 0)
    part = _PARTS.get(call.string(index).lower())
    if term.type.name not in _TIMES or part is None or (of_date and part not in _OF_DATES):
        raise call.refused()
    type_ = DATE if of_date else TIMESTAMP
    return Term(sql=cast(f"date_trunc('{part}', {cast(term.sql, type_)})", type_), type=type_)


def added_days(call: Call) -> Term:
    """date_add and date_sub."""
    call.takes(2)
    if call.types[0] != "date" or call.types[1] not in UP_TO_INT:
        raise call.refused()
    sign = "-" if call.name == "date_sub" else "+"
    sql = f"({call.terms[0].sql} {sign} {cast(call.terms[1].sql, INT)})"
    return Term(sql=within_years(call, sql, DATE), type=DATE)


def days_between(call: Call) -> Term:
    """datediff(end, start)."""
    call.takes(2)
    if any(name not in _TIMES for name in call.types):
        raise call.refused()
    ended, began = (cast(term.sql, DATE) for term in call.terms)
    return Term(sql=cast(f"({ended} - {began})", INT), type=INT)


def added_months(call: Call) -> Term:
    call.takes(2)
    if call.types[0] != "date" or call.types[1] not in UP_TO_INT:
        raise call.refused()
    sql = cast(f"({call.terms[0].sql} + to_months({cast(call.terms[1].sql, INT)}))", DATE)
    return Term(sql=within_years(call, sql, DATE), type=DATE)


def read_as(call: Call) -> Term:
    """to_date and to_timestamp without a format are casts."""
    call.takes(1)
    type_ = DATE if call.name == "to_date" else TIMESTAMP
    if call.types[0] not in (*_TIMES, "string"):
        raise call.refused()
    return converted(call.terms[0], type_, call.node, call.scope)


def since_1970(call: Call) -> Term:
    """unix_seconds, unix_millis, unix_micros of a timestamp, rounded down."""
    call.takes(1)
    if call.types[0] != "timestamp":
        raise call.refused()
    unit = {"unix_micros": 1, "unix_millis": 1000}.get(call.name, SECOND_US)
    return Term(sql=rounded_down(f"epoch_us({call.terms[0].sql})", unit), type=BIGINT)


def from_1970(call: Call) -> Term:
    """timestamp_seconds, timestamp_millis, timestamp_micros of a whole number."""
    call.takes(1)
    unit = {"timestamp_micros": 1, "timestamp_millis": 1000, "timestamp_seconds": SECOND_US}[call.name]
    if call.terms[0].type.name not in INTEGERS:
        raise call.refused()
    sql = f"make_timestamp({cast(call.terms[0].sql, BIGINT)} * {cast(str(unit), BIGINT)})"
    return Term(sql=within_years(call, sql, TIMESTAMP), type=TIMESTAMP)


def date_of(call: Call) -> Term:
    call.takes(3)
    if any(name not in UP_TO_INT for name in call.types):
        raise call.refused()
    year = call.terms[0]
    parts = ", ".join(cast(term.sql, INT) for term in call.terms)
    sql = bind([year], lambda it: call.guarded(f"{it} NOT BETWEEN 1 AND 9999", f"make_date({parts})", _YEARS))
    return Term(sql=f"({sql})", type=DATE)


def formatted(call: Call) -> Term:
    """date_format with yyyy, MM, dd, HH, mm, ss, SSS, quoted letters and signs."""
    call.takes(2)
    if call.types[0] not in _TIMES:
        raise call.refused()
    left, made = call.string(1), ""
    while left:
        found = _PATTERN.match(left)
        if found is None:
            raise call.refused("this format of a time is not listed")
        made += _FORMATS.get(found[0], found[0].strip("'"))
        left = left[found.end() :]
    if re.search(r"(?<!%)%(?![YmdHMSg])", made):
        raise call.refused("this format of a time is not listed")
    return Term(sql=f"strftime({to(call.terms[0], TIMESTAMP).sql}, {text_literal(made)})", type=STRING)


FUNCTIONS: dict[str, Function] = {
    **dict.fromkeys(_FIELDS, field), "last_day": last_day, "date_trunc": truncated, "trunc": truncated,
    **dict.fromkeys(("date_add", "date_sub", "dateadd"), added_days), "datediff": days_between,
    "date_diff": days_between, "add_months": added_months, "to_date": read_as, "to_timestamp": read_as,
    **dict.fromkeys(("unix_seconds", "unix_millis", "unix_micros"), since_1970),
    **dict.fromkeys(("timestamp_seconds", "timestamp_millis", "timestamp_micros"), from_1970),
    "make_date": date_of, "date_format": formatted,
}  # fmt: skip
