"""The only table of which SQL function is which measure, both ways."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from sqlglot.tokenizer_core import Token

from twinlake.base.errors import near
from twinlake.kinds.measures.counts import Count, CountDistinct
from twinlake.kinds.measures.extremes import Max, Min
from twinlake.kinds.measures.histogram import Histogram
from twinlake.kinds.measures.measure import MEASURED, Measure
from twinlake.kinds.measures.multisets import Quantile, TopK
from twinlake.kinds.measures.picks import ArgMax, ArgMin, First, Last
from twinlake.kinds.measures.sets import CollectSet
from twinlake.kinds.measures.spread import Stddev, Variance
from twinlake.kinds.measures.totals import Avg, Sum
from twinlake.kinds.sql_form.text import Span, closing, is_name, is_sign, is_word


@dataclass(frozen=True, kw_only=True)
class Function:
    """`takes` are the measure's fields in the order of the arguments, of which the last may be left out where
    it `may_lack` it; `fixed` are those that the function says."""

    name: str
    measure: type[Measure]
    takes: tuple[str, ...] = ("of",)
    may_lack: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)
    distinct: bool = False

    @property
    def form(self) -> str:
        """As it is written."""
        takes = ("column" if one == "of" else one for one in self.takes)
        return f"{self.name}({'DISTINCT ' * self.distinct}{', '.join(takes) or '*'})"

    def takes_so_many(self, arguments: int) -> bool:
        return len(self.takes) - self.may_lack <= arguments <= len(self.takes)


FUNCTIONS: tuple[Function, ...] = (
    Function(name="count", measure=Count, takes=()),
    Function(name="count", measure=Count),
    Function(name="count", measure=CountDistinct, fixed={"exact": True}, distinct=True),
    Function(name="approx_count_distinct", measure=CountDistinct, fixed={"exact": False}),
    Function(name="sum", measure=Sum),
    Function(name="avg", measure=Avg),
    Function(name="min", measure=Min),
    Function(name="max", measure=Max),
    Function(name="variance", measure=Variance),
    Function(name="stddev", measure=Stddev),
    Function(name="first", measure=First, takes=("of", "by"), may_lack=True),
    Function(name="last", measure=Last, takes=("of", "by"), may_lack=True),
    Function(name="min_by", measure=ArgMin, takes=("of", "by")),
    Function(name="max_by", measure=ArgMax, takes=("of", "by")),
    Function(name="approx_percentile", measure=Quantile, takes=("of", "q")),
    Function(name="histogram", measure=Histogram, takes=("of", "edges")),
    Function(name="histogram", measure=Histogram, takes=("of", "low", "high", "buckets")),
    Function(name="top_k", measure=TopK, takes=("of", "most", "by"), may_lack=True),
    Function(name="collect_set", measure=CollectSet, takes=("of", "most"), may_lack=True),
)
NAMES = tuple(dict.fromkeys(one.name for one in FUNCTIONS))
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
_INSTEAD = {
    "mean": "avg(column)", "median": "approx_percentile(column, 0.5)",
    "percentile": "approx_percentile(column, q)", "percentile_cont": "approx_percentile(column, q)",
    "percentile_approx": "approx_percentile(column, q)", "quantile": "approx_percentile(column, q)",
    "std": "stddev(column)", "stddev_samp": "stddev(column)", "var_samp": "variance(column)",
    "first_value": "first(column)", "last_value": "last(column)", "any_value": "min(column)",
    "approx_top_k": "top_k(column, most)", "mode": "top_k(column, 1)",
    "collect_list": "collect_set(column)", "array_agg": "collect_set(column)",
    "count_if": "sum(if(condition, 1, 0))", "arg_min": "min_by(column, by)",
    "arg_max": "max_by(column, by)", "histogram_numeric": "histogram(column, array(10, 100))",
}  # fmt: skip
"""What other engines, and Spark itself, call what a measure is near to."""


def is_one(item: Span) -> bool:
    """Whether it is the call of a measure."""
    call = _called(item)
    return call is not None and call[0] in NAMES


def instead(item: Span) -> str | None:
    """Of a call of what may be an aggregate elsewhere: the measure to write."""
    call = _called(item)
    if call is None or call[0] in NAMES:
        return None
    if call[0] in _INSTEAD:
        return f"write {_INSTEAD[call[0]]}"
    meant = near(call[0], NAMES, listed=False)
    return meant.removeprefix("; ") or None


def arguments(item: Span) -> tuple[Function, tuple[Span, ...]]:
    """The function that is called with these arguments; DefinitionError where no measure takes so many."""
    name, after, args = _parts(item)
    if after:
        why = f"{after[0].text} after {name}(...) is no part of a measure"
        if is_word(after[0], "FILTER"):
            raise item.source.wrong(after[0], why, f"write {name}(if(condition, column, NULL))")
        if is_word(after[0], "OVER"):
            raise item.source.wrong(after[0], why, "number and compare rows in a Derived table")
        remedy = "a measure is one function: compute with measures in a Derived table"
        raise item.source.wrong(after[0], why, remedy)
    distinct = bool(args) and is_word(args[0].tokens[0], "DISTINCT")
    if distinct:
        args = (Span(item.source, args[0].tokens[1:]), *args[1:])
    known = [one for one in FUNCTIONS if one.name == name]
    for one in known:
        # what takes nothing is written with a *
        if not one.takes and [each.text for each in args] == ["*"]:
            return one, ()
        if one.takes and one.distinct == distinct and one.takes_so_many(len(args)):
            return one, args
    forms = " or ".join(one.form for one in known)
    raise item.wrong(f"no measure is written like this {name}(...)", f"write {forms}")


def measure(function: Function, args: Sequence[Span], columns: Mapping[int, str]) -> Measure:
    """The measure; `columns` are the names of those arguments, by their index, that are columns."""
    values = {
        name: columns[index] if name in MEASURED else _literal(one)
        for index, (name, one) in enumerate(zip(function.takes, args, strict=False))
    }
    return function.measure(**function.fixed, **values)


def written(of: Measure, column: Mapping[str, str]) -> str | None:
    """The call; `column` says how a column is written. None where no function says all of it."""
    for one in FUNCTIONS:
        if one.measure is type(of) and (args := _arguments(one, of)) is not None:
            texts = [
                column[value] if name in MEASURED else _text(value)
                for name, value in zip(one.takes, args, strict=False)
            ]
            inside = "*" if one.name == "count" and not texts else ", ".join(texts)
            return f"{one.name}({'DISTINCT ' * one.distinct}{inside})"
    return None


def _arguments(function: Function, of: Measure) -> list[Any] | None:
    """The values that it is called with; None where it leaves one out that is not as it is by default."""
    values = {one.name: getattr(of, one.name) for one in fields(of)}
    if any(values.pop(name) != value for name, value in function.fixed.items()):
        return None
    defaults = {one.name: one.default for one in fields(of)}
    args = [values.pop(name) for name in function.takes]
    if any(value != defaults[name] for name, value in values.items()):
        return None
    if function.may_lack and args[-1] == defaults[function.takes[-1]]:
        args.pop()
    return None if None in args else args


def _called(item: Span) -> tuple[str, int] | None:
    """The function that an expression begins with, and the index after its brackets."""
    tokens = item.tokens
    if len(tokens) < 3 or not (is_name(tokens[0]) and is_sign(tokens[1], "(")):
        return None
    return tokens[0].text.lower(), closing(tokens, 1) + 1


def _parts(item: Span) -> tuple[str, Sequence[Token], tuple[Span, ...]]:
    """Name, what follows the brackets, and the arguments."""
    called = _called(item)
    assert called is not None, "only what `is_one`"
    name, ends = called
    call = Span(item.source, item.tokens[:ends]).call()
    return name, item.tokens[ends:], call[1] if call else ()


def _literal(one: Span) -> Any:
    """A number, or an `array(...)` of numbers as a tuple."""
    call = one.call()
    if call and call[0] == "array":
        return tuple(map(_literal, call[1]))
    if not _NUMBER.fullmatch(one.text):
        raise one.wrong(f"{one.text} is not a number", "write the number itself")
    return float(one.text) if set(one.text) & set(".eE") else int(one.text)


def _text(value: Any) -> str:
    return f"array({', '.join(map(_text, value))})" if isinstance(value, tuple) else repr(value)


def within(item: Span) -> Token | None:
    """Where in an expression a measure is called."""
    pairs = zip(item.tokens, item.tokens[1:], strict=False)
    calls = (one for one, after in pairs if is_name(one) and is_sign(after, "("))
    return next((one for one in calls if one.text.lower() in NAMES), None)
