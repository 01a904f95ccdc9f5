"""Owns rows as columns and types alone: what a kind's `stages` and `problems` ask of a relation, without
Spark. Expressions are typed by the witness, where it knows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from sqlglot import exp

from twinlake.base.errors import UsageError
from twinlake.definitions import misspelt, syntax
from twinlake.kinds.row_local import SPECIAL
from twinlake.witness.expressions import Translation
from twinlake.witness.names import casts_what_is_written, texts, used
from twinlake.witness.refused import Refused
from twinlake.witness.rules.parser import parse
from twinlake.witness.types import Type, struct

UNKNOWN = "unknown"
"""In place of Spark's text of a type that is not known here."""


class Misspelt(UsageError):
    """An expression that is none, or a name in it that nobody has."""

    def __init__(self, wrong: misspelt.Wrong) -> None:
        self.word, self.why_text = wrong.word, wrong.why
        super().__init__(wrong.why)


class TypedRows:
    """A relation of these columns; None is a type that is not known. It has the members of Spark's DataFrame
    that definitions are analysed with, and their names."""

    def __init__(
        self, types: Mapping[str, Type | None], beside: Iterable[str] = (), sides: Iterable[str] = ()
    ) -> None:
        self.types, self._sides = dict(types), frozenset(sides)
        self._names = (*types, *beside)
        """All that an expression may begin with."""

    @classmethod
    def of(cls, columns: Iterable[tuple[str, str]]) -> TypedRows:
        """Columns with Spark's texts of their types."""
        return cls({name: _type(text) for name, text in columns})

    @property
    def columns(self) -> list[str]:
        return list(self.types)

    @property
    def dtypes(self) -> list[tuple[str, str]]:
        return [(name, UNKNOWN if one is None else one.spark) for name, one in self.types.items()]

    def where(self, condition: str) -> TypedRows:
        return self

    def select(self, *shown: str) -> TypedRows:
        types: dict[str, Type | None] = {}
        for text in shown:
            types |= self.types if text == "*" else dict([self._named(text)])
        return TypedRows(types)

    def alias(self, name: str) -> TypedRows:
        """The rows under a name: each is a struct of its columns, too."""
        fields = [(column, one) for column, one in self.types.items() if one is not None]
        return TypedRows({name: struct(*fields)}, self._names, (name,))

    def crossJoin(self, other: TypedRows) -> TypedRows:
        types, names = {**self.types, **other.types}, (*self._names, *other._names)
        return TypedRows(types, names, self._sides | other._sides)

    def type_of(self, sql: str) -> Type:
        """The type of an expression over these rows. Misspelt for one that no engine could compute; Refused
        where the witness cannot say what Spark makes of it."""
        try:
            tree = parse(sql)
        except Refused:
            if why := syntax.why_no_expression(sql):
                raise Misspelt(misspelt.Wrong("", why)) from None
            raise
        for wrong in misspelt.in_expression(tree, self._names):
            raise Misspelt(wrong)
        if "/*+" in sql:
            raise Refused(sql, "a hint stands in no expression")
        if any(map(SPECIAL.match, texts(tree))) or casts_what_is_written(tree):
            raise Refused(sql, "a text in it may be read as a time of the run")
        return self._translated(tree)

    def _named(self, text: str) -> tuple[str, Type | None]:
        tree = parse(text)
        inner = tree.this if isinstance(tree, exp.Alias) else tree
        while isinstance(inner, exp.Paren):
            inner = inner.this
        exploded = isinstance(inner, exp.Anonymous) and str(inner.this).lower() == "explode"
        found = None
        with suppress(Refused):
            found = self._translated(inner.expressions[0] if exploded else inner)
        if exploded and found is not None:
            found = found.element if found.name == "array" else None
        return tree.alias_or_name, found

    def _translated(self, tree: exp.Expression) -> Type:
        unknown = {name.lower() for name, one in self.types.items() if one is None}
        for first, *fields in used(tree).columns:
            if first.lower() in unknown:
                raise Refused(first, "its type is not known")
            if first.lower() in self._sides and not fields:
                raise Refused(first, "it is a side of the join, and no value")
        known = {name: one for name, one in self.types.items() if one is not None}
        return Translation(known).term(tree).type


def _type(text: str) -> Type | None:
    with suppress(Refused):
        return Type.parse(text)
    return None
