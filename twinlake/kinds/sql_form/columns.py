"""Owns the columns of the row-local steps, as a statement lists or names them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from twinlake.base.errors import near
from twinlake.kinds.sql_form import functions
from twinlake.kinds.sql_form.clauses import Item
from twinlake.kinds.sql_form.text import Span, SqlText, is_sign, is_word

NEWEST = "write QUALIFY row_number() OVER (PARTITION BY key ORDER BY time DESC) = 1"
_INNER = "name it in a SELECT in brackets: FROM (SELECT ... AS name FROM topic)"


@dataclass
class Columns:
    """With `listed` they are those of a SELECT in brackets, and all; else each that is named is one more."""

    by_name: dict[str, str]
    listed: bool

    def take(self, one: Span, name: str | None = None) -> str:
        """The name of the column that an expression is; `name` is what it is called where it is no name."""
        own = one.name
        if self.listed:
            if own is None or own not in self.by_name:
                meant = "" if own is None else near(own, self.by_name)
                raise one.wrong(f"{one.text} is not a column of the inner SELECT{meant}", _INNER)
            return own
        if (wanted := own or name) is None:
            raise one.wrong(f"{one.text} has no name of its own", _INNER)
        text = self.by_name.setdefault(wanted, one.text)
        if text not in (one.text, own, f"`{own}`"):
            raise one.wrong(f"{wanted} is {text} already, and {one.text} here", _INNER)
        return wanted

    def select(self, item: Item) -> str:
        """The name of the column that is selected, and shown."""
        name, one = name_of(item), item.expression
        if self.listed:
            if one.name != name:
                raise one.wrong(f"{one.text} gets its name outside", "name it in the inner SELECT")
            return self.take(one)
        if self.by_name.setdefault(name, one.text) != one.text:
            raise one.wrong(f"{name} is {self.by_name[name]} already", "rename one of them: AS name")
        return name


def listed(source: SqlText, items: Sequence[Item]) -> Columns:
    """Those of a SELECT whose rows stay rows."""
    found = dict[str, str]()
    refuse_measures(items, "GROUP BY the others, or leave it out")
    for one in items:
        if (name := name_of(one)) in found:
            raise source.wrong(one.start, f"two columns are called {name}", "rename one: AS name")
        found[name] = one.expression.text
    return Columns(found, listed=True)


def name_of(item: Item) -> str:
    if item.name is None:
        raise item.expression.wrong(f"{item.expression.text} has no name", "write AS name after it")
    return item.name


def selected(one: Span, items: Iterable[Item]) -> str | None:
    """The selected column that it is: by its name, or written in the same way."""
    found = (each.name for each in items if each.name == one.name or one.same_as(each.expression))
    return next((name for name in found if name is not None), None)


def refuse_measures(items: Iterable[Item], remedy: str) -> None:
    """DefinitionError for a measure where rows stay rows."""
    for item in items:
        if token := functions.within(item.expression):
            raise item.expression.source.wrong(token, f"{token.text}(...) is of several rows", remedy)


def refuse_rows_of_others(one: Span) -> None:
    """DefinitionError for an expression that looks at more than its row."""
    for before, token in zip(one.tokens, one.tokens[1:], strict=False):
        if is_word(token, "OVER") and is_sign(before, ")"):
            why = "a window function looks at other rows, which may come later"
            raise one.source.wrong(token, why, f"{NEWEST}; for others write a Derived table")
        if is_word(token, "SELECT") and is_sign(before, "("):
            remedy = "join tables in a Derived one: `-- reads: a, b` on top"
            raise one.source.wrong(token, "a subquery has no kind", remedy)
