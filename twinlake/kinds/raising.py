"""Owns the expressions that can raise: which they are, and the first record for which one did.

A valid record may have any value that its contract allows. Where an expression raises for one, the version
can never get past it: every step that has the record in it fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from twinlake.kinds.expression import Expression
from twinlake.kinds.row_local import analysed, first_line, is_a, simple_name
from twinlake.topics import record_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_REPLACED = "org.apache.spark.sql.catalyst.expressions.RuntimeReplaceable"
_NO_NUMBER = "a text is not a number of that form"
_DIVISIONS = {
    "Divide": "try_divide(a, b) or a / nullif(b, 0)",
    "IntegralDivide": "a div nullif(b, 0)",
    "Remainder": "try_mod(a, b) or a % nullif(b, 0)",
    "Pmod": "pmod(a, nullif(b, 0))",
}
_OVERFLOWS = {
    "Add": "try_add(a, b)", "Subtract": "try_subtract(a, b)", "Multiply": "try_multiply(a, b)",
    "UnaryMinus": "try_subtract(0, a)", "Abs": "abs(CAST(a AS decimal(38,0)))",
}  # fmt: skip
_STRICT = {
    "ElementAt": ("the index is beyond the array", "try_element_at(array, index)"),
    "GetArrayItem": ("the index is beyond the array", "get(array, index)"),
    "Elt": ("the index is beyond the list", "get(array(...), index - 1)"),
    "GetTimestamp": ("a text is not a time of that form", "try_to_timestamp or try_to_date"),
    "ToUnixTimestamp": ("a text is not a time of that form", "unix_timestamp(try_to_timestamp(text, form))"),
    "UnixTimestamp": ("a text is not a time of that form", "unix_timestamp(try_to_timestamp(text, form))"),
    "MakeDate": ("there is no such date", "try_to_date of a text made of the parts"),
    "MakeTimestamp": ("there is no such time", "try_make_timestamp"),
    "MakeInterval": ("the interval is too long", "try_make_interval"),
    "NextDay": ("a text is not a day of the week", "CASE WHEN day IN (...) THEN next_day(date, day) END"),
    "Conv": ("the number is too large", "CASE WHEN char_length(text) < ... THEN conv(...) END"),
    "ParseUrl": ("a text is not an address", "try_parse_url"),
    "UrlDecode": ("a text is not encoded like that", "try_url_decode"),
    "Unhex": (_NO_NUMBER, "try_to_binary(text, 'hex')"),
}
"""By class, for those that raise only if asked to: when they do, and what never does."""
_ALWAYS = {
    "RaiseError": ("it is reached", "a rule of the contract: such a record is not valid then"),
    "ToNumber": (_NO_NUMBER, "try_to_number"),
    "ToBinary": (_NO_NUMBER, "try_to_binary"),
    "Sequence": (
        "the end is before the start",
        "sequence(a, b), or CASE WHEN a <= b THEN ... END",
    ),
    "MapFromArrays": ("a key is NULL or given twice", "arrays_zip, which makes an array of pairs"),
    "MapFromEntries": ("a key is NULL or given twice", "the array of entries itself"),
    "MapConcat": ("a key is given twice", "an array of maps"),
    "CreateMap": ("a key is NULL or given twice", "a struct, or an array of structs"),
}
_MAY_BE_STRICT = {*_STRICT, *_DIVISIONS, *_OVERFLOWS, "Cast"}
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""How many digits the largest number has; all numbers with fewer fit."""


def can_raise(expression: Expression, rows: DataFrame) -> list[tuple[str, str]]:
    """When it raises, and how to write it so that it does not; empty where no value makes it raise."""
    found = (_finding(node) for node in _evaluated(analysed(expression, rows)[0], rows))
    return list(dict.fromkeys(one for one in found if one is not None))


def first_raising(expression: Expression, rows: DataFrame) -> tuple[tuple[int, int, int], str] | None:
    """The least record id for whose row the expression raises, and what Spark says then; reads all rows."""
    from pyspark.sql import Column
    from pyspark.sql import functions as F

    jvm: Any = rows.sparkSession._jvm
    columns = jvm.org.apache.spark.sql.classic.ExpressionUtils
    # a struct is never NULL, whatever is in it: only an error makes it one
    inner = columns.expression(F.struct(F.expr(expression.sql))._jc)
    tried = Column(columns.column(jvm.org.apache.spark.sql.catalyst.expressions.TryEval(inner)))
    raising = rows.where(tried.isNull()).select(*record_id.KEY).orderBy(*record_id.KEY)
    first = raising.first()
    if first is None:
        return None
    here = " AND ".join(f"{name} = {first[name]}" for name in record_id.KEY)
    try:
        rows.where(here).select(F.expr(expression.sql)).collect()
    except Exception as error:
        why = first_line(error)
    else:
        why = "it raises beside other records only"
    return (first[0], first[1], first[2]), why


def _evaluated(node: Any, rows: DataFrame) -> Iterator[Any]:
    """The nodes that are computed: of a function also what it stands for, and nothing of what is tried."""
    kind = simple_name(node)
    if kind == "TryEval":
        return
    yield node
    if kind == "RaiseError":
        return
    if is_a(node, _REPLACED):
        yield from _evaluated(node.replacement(), rows)
        return
    children = node.children()
    for index in range(children.size()):
        yield from _evaluated(children.apply(index), rows)


def _finding(node: Any) -> tuple[str, str] | None:
    kind = simple_name(node)
    if kind == "ElementAt" and not node.left().dataType().simpleString().startswith("array<"):
        return None  # a map has NULL for a key that it has not
    if kind == "Sequence" and node.children().size() < 3:
        return None  # it goes up or down as the two ends ask for
    if kind in _ALWAYS:
        return _ALWAYS[kind]
    if kind not in _MAY_BE_STRICT or not _strict(node):
        return None
    if kind in _STRICT:
        return _STRICT[kind]
    if kind in _DIVISIONS:
        return None if _never_zero(node.right()) else ("the divisor is 0", _DIVISIONS[kind])
    type_ = node.dataType().simpleString()
    if kind in _OVERFLOWS and (type_ in _DIGITS or type_.startswith(("decimal(38,", "interval"))):
        return (f"the result is too large for {type_}", _OVERFLOWS[kind])
    if kind == "Cast" and not node.child().foldable():
        given = node.child().dataType().simpleString()
        if not _fits(given, type_):
            return (f"a {given} is not of type {type_}", f"try_cast(... AS {type_})")
    return None


def _strict(node: Any) -> bool:
    """Whether it raises where others of its class give NULL."""
    from py4j.protocol import Py4JError

    for flag in ("evalMode", "failOnError", "ansiEnabled"):  # failOnError is true of what is tried, too
        try:
            return str(getattr(node, flag)()) in ("true", "True", "ANSI")
        except Py4JError:
            continue  # it has no such flag
    return False


def _never_zero(divisor: Any) -> bool:
    """A number that is written there and not 0, or `nullif(..., 0)`: NULL divides without an error."""
    while simple_name(divisor) == "Cast":
        divisor = divisor.child()
    if simple_name(divisor) == "NullIf":
        return not _never_zero(divisor.right())
    return simple_name(divisor) == "Literal" and not re.fullmatch(r"-?0*\.?0*(E.*)?", str(divisor.toString()))


def _fits(given: str, wanted: str) -> bool:
    """Whether every value of one type is one of the other."""
    if given == wanted or given == "void" or wanted in ("string", "binary"):
        return True
    if given.startswith("array<") and wanted.startswith("array<"):
        return _fits(given[6:-1], wanted[6:-1])
    if {given, wanted} <= {"date", "timestamp", "timestamp_ntz"} or given == "boolean":
        return True
    if given == "timestamp":
        return wanted in ("bigint", "float", "double")
    (left, fraction), (room, kept) = _size(given), _size(wanted)
    if wanted in ("float", "double", "boolean"):
        return left is not None or given in ("float", "double")
    if left is None or room is None:
        return False
    if wanted in _DIGITS and given not in _DIGITS:
        return left < room  # cut off, not rounded; of the numbers with most digits only some fit
    return left < room or (left == room and fraction <= kept)


def _size(type_: str) -> tuple[int | None, int]:
    """(digits before the point, digits after it) of a number that is exact, (None, 0) of anything else."""
    if type_ in _DIGITS:
        return _DIGITS[type_], 0
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]) - int(found[2]), int(found[2])) if found else (None, 0)
