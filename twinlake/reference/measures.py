"""docs/measures.md from the code."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, fields

from twinlake.kinds.measures.all import MEASURES
from twinlake.kinds.measures.measure import MEASURED, Measure, sample
from twinlake.kinds.sql_form.functions import FUNCTIONS
from twinlake.reference import row

HEAD = """# Measures

Made from the code by `python -m twinlake.reference`; a test compares.

A measure is what an `Aggregate` (and every kind that aggregates) shows per key and window. It keeps a state
that is a function of the *set* of its rows: any cut of history, in any order, merged in any way, gives the
same one. `of` and `by` are columns of the table's row-local steps.
"""
COLUMNS = {
    "in SQL": "how [a statement](sql.md) says it: `count(DISTINCT column)` is with `exact=True`",
    "shows": "what a reader sees",
    "state columns": "of a measure that is called `m`",
    "equal": "when certificates and releases call two values equal",
    "ties": "which of equal rows or values wins",
}
NEW = '''## A measure of your own

One module and one line of a list: a frozen dataclass that inherits `Measure`, in a module of
`twinlake/kinds/measures/`, and its class in `MEASURES` of its `all.py`. Nothing else knows
measures by name. Or the class is in [a package of your own](plugins.md). It gives Spark SQL for three things:

- `parts`: its state columns, each with an aggregate over the rows (`from_rows`) and one over states
  (`merge`). A double that adds up names as `scale` the state column with the sizes by which it is compared.
- `value`: an aggregate over state columns, what a reader sees; `scale` the same for its tolerance.
- `refuses`: why columns of some types cannot be measured. `semantics` is its row of the table above.
- `running`, for [a Trailing](kinds.md#what-was-before-each-record): merges of states of a row each that cost
  the same however many rows there have been; without it a Trailing refuses the measure.

[The witness](witness.md) does not know it: a table that has it is not witnessed, and its certificates say so.

Use aggregates that are functions of the set: no `first`, no `collect_list` of values, nothing approximate
whose bytes follow the order. This one is tested with speed, merges, rebuilds, releases and readers in
`tests/kinds/test_new_kind.py` and `tests/kill/test_plugin.py`:

```python
@dataclass(frozen=True)
class LogSum(Measure):
    """The sum of the natural logarithms of positive numbers."""

    kind = "log_sum"

    def parts(self, name: str, types: Mapping[str, str]) -> tuple[Part, ...]:
        logarithm = f"ln(CAST({self.of} AS DOUBLE))"
        size = f"{name}__size"
        return (
            Part(name=f"{name}__logs", from_rows=f"sum({logarithm})", merge=self.value(name), scale=size),
            Part(name=size, from_rows=f"sum(abs({logarithm}))", merge=f"sum({size})", scale=size),
        )

    def value(self, name: str) -> str:
        return f"sum({state_column(name, 'logs')})"

    def scale(self, name: str) -> str | None:
        return f"sum({state_column(name, 'size')})"
```
'''


def table() -> Iterator[str]:
    titles = ("measure", "in SQL", "shows", "state columns", "equal", "ties", "NULL", "NaN, infinities, -0.0",
              "empty group", "overflow")  # fmt: skip
    yield row(*titles)
    yield "|---" * len(titles) + "|"
    for kind in MEASURES.values():
        semantics = kind.semantics
        if semantics is None:
            raise ValueError(f"measure {kind.kind} has no `semantics`: say what it promises, see Semantics")
        shows = " ".join((kind.__doc__ or "").split())
        yield row(
            _signature(kind), _functions(kind), shows, _states(kind), semantics.equality, semantics.ties,
            semantics.null, semantics.nan, semantics.empty, semantics.overflow,
        )  # fmt: skip


def text() -> str:
    meanings = [f"- *{title}*: {meaning}" for title, meaning in COLUMNS.items()]
    return "\n".join([HEAD, *meanings, "", *table(), "", NEW])


def _signature(kind: type[Measure]) -> str:
    shown = [
        field.name if field.default is MISSING else f"{field.name}={field.default!r}"
        for field in fields(kind)
    ]
    return f"`{kind.__name__}({', '.join(shown)})`"


def _functions(kind: type[Measure]) -> str:
    return ", ".join(f"`{one.form}`" for one in FUNCTIONS if one.measure is kind) or "-"


def _states(kind: type[Measure]) -> str:
    """Those of exact numbers and those of doubles, where the columns differ."""
    names: dict[str, None] = {}
    for type_ in ("bigint", "double"):
        parts = sample(kind).parts("m", dict.fromkeys(MEASURED, type_))
        names |= dict.fromkeys(part.name for part in parts)
    quoted = [f"`{name}`" for name in names]
    return ", ".join(["a row per item", *quoted] if sample(kind).item is not None else quoted)
