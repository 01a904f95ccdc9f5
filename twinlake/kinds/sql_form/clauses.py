"""Owns the cutting of a SELECT into its clauses, and the refusal by name of those that no kind has.

A word begins a clause only where a value has ended: in `a > limit` it is a column.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot.tokenizer_core import Token, TokenType

from twinlake.kinds.sql_form.text import (
    STRINGS,
    Span,
    SqlText,
    closing,
    is_name,
    is_sign,
    is_word,
    outside,
    split,
)

_DERIVED = "over tables, say `-- reads: a, b` and `-- keys: ...` on top"
_JOINED = (
    "SQL joins no topics", f"{_DERIVED}; over topics, write an IntervalJoin or AsOfJoin in Python"
)  # fmt: skip
_PARTED = ("several SELECTs are no table of a topic", f"{_DERIVED}; or write a Union in Python")
_ORDERED = ("a table's rows have no order", "order where you query; for the newest row of each key, write "
            "QUALIFY row_number() OVER (PARTITION BY key ORDER BY time DESC) = 1")  # fmt: skip
_LIMITED = ("a table shows all its rows", "for so many rows of each key, write "
            "QUALIFY row_number() OVER (PARTITION BY key ORDER BY time DESC) <= 10")  # fmt: skip
_SORTED = ("how rows are spread is not a table's to say", "leave it out")
REFUSED: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(("JOIN", "INNER", "LEFT", "RIGHT", "FULL", "CROSS", "NATURAL", "SEMI", "ANTI"), _JOINED),
    **dict.fromkeys(("UNION", "UNION ALL", "EXCEPT", "MINUS", "INTERSECT"), _PARTED),
    **dict.fromkeys(("ORDER BY", "SORT BY"), _ORDERED),
    **dict.fromkeys(("LIMIT", "OFFSET", "FETCH"), _LIMITED),
    **dict.fromkeys(("CLUSTER BY", "DISTRIBUTE BY"), _SORTED),
    "HAVING": ("a group that is hidden would come and go", "read this table in a Derived one, with a WHERE"),
    "WINDOW": ("windows with names are not known", "write the window after OVER"),
    "TABLESAMPLE": ("it draws other rows every time", "leave it out"),
    "PIVOT": ("columns that the rows decide are not known", "write one measure for each column"),
    "UNPIVOT": ("it has no kind", "write LATERAL VIEW explode(array(...)) AS name"),
    "SETTINGS": ("it has no kind", "leave it out"),
}
"""By the word that begins a clause, why no kind has it and what to write."""
_KEPT = ("LATERAL", "WHERE", "GROUP BY", "QUALIFY")
_OPEN_WORDS = (
    "AND", "OR", "NOT", "IN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "BETWEEN", "IS", "THEN", "ELSE", "WHEN",
    "CASE", "DIV", "ESCAPE", "INTERVAL", "ANY", "SOME", "ALL", "WHERE", "QUALIFY", "GROUP BY",
    "SELECT", "DISTINCT", "FROM", "AS",
)  # fmt: skip
"""Words that a value follows."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One of what is selected: the expression, and how the column is called, where that is said."""

    expression: Span
    name: str | None

    @property
    def start(self) -> int:
        return self.expression.start


@dataclass(frozen=True, kw_only=True)
class Select:
    """`rows` is the topic's name, or the SELECT in brackets after FROM; `group` is empty without GROUP BY."""

    source: SqlText
    start: int
    items: tuple[Item, ...]
    rows: Token | Select
    explode: tuple[str, Span] | None
    where: Span | None
    group: tuple[Span, ...]
    qualify: Span | None

    @property
    def spans(self) -> Iterator[Span]:
        """The expressions of it that see one row."""
        yield from (one.expression for one in self.items)
        yield from (one for one in (self.where, self.explode[1] if self.explode else None) if one)
        yield from self.group


def statement(source: SqlText) -> tuple[Token, ...]:
    """The tokens of the only statement, without a `;` at its end."""
    tokens = source.tokens()
    ends = next((index for index, one in enumerate(tokens) if is_sign(one, ";")), len(tokens))
    if rest := [one for one in tokens[ends:] if not is_sign(one, ";")]:
        remedy = "a file defines one table: write another file"
        raise source.wrong(rest[0], "a second statement begins here", remedy)
    if not ends:
        raise source.wrong(len(source.text.rstrip()), "there is no statement", "write SELECT ... FROM ...")
    return tokens[:ends]


def select(source: SqlText, tokens: Sequence[Token]) -> Select:
    """The clauses of a SELECT over one topic; DefinitionError for what none of the kinds has."""
    first = tokens[0]
    if is_word(first, "WITH"):
        raise source.wrong(first, "WITH has no kind over a topic", f"write FROM (SELECT ...); {_DERIVED}")
    if not is_word(first, "SELECT"):
        raise source.wrong(first, f"it begins with {first.text}, not with SELECT", "write one SELECT")
    ends = next((index for index in outside(tokens) if _is_from(tokens, index)), len(tokens))
    items = tuple(_items(source, tokens, ends))
    if ends == len(tokens):
        raise source.wrong(tokens[-1], "no FROM follows what is selected", "write FROM and the topic's name")
    rows, at = _rows(source, tokens, ends + 1)
    parts = dict(_clauses(source, tokens, at))
    lateral = parts.get("LATERAL")
    return Select(
        source=source, start=first.start, items=items, rows=rows,
        explode=_exploded(source, lateral) if lateral else None,
        where=Span(source, parts["WHERE"]) if "WHERE" in parts else None,
        group=tuple(split(source, parts["GROUP BY"])) if "GROUP BY" in parts else (),
        qualify=Span(source, parts["QUALIFY"]) if "QUALIFY" in parts else None,
    )  # fmt: skip


def shown(source: SqlText, tokens: Sequence[Token]) -> Iterator[Item]:
    """What any query selects: of one with common table expressions, or of several, the first SELECT."""
    begin = next((index for index in outside(tokens) if is_word(tokens[index], "SELECT")), None)
    if begin is None:
        return
    rest = tokens[begin:]
    ends = (index for index in outside(rest) if _is_from(rest, index) or _begins(rest, index))
    yield from _items(source, rest, next(ends, len(rest)))


def _items(source: SqlText, tokens: Sequence[Token], ends: int) -> Iterator[Item]:
    begin = 1
    if ends > 1 and is_word(tokens[1], "DISTINCT"):
        remedy = "write GROUP BY with these columns, and count(*) AS a name"
        raise source.wrong(tokens[1], "SELECT DISTINCT has no kind", remedy)
    if ends > 1 and is_word(tokens[1], "ALL") and not is_sign(tokens[min(2, ends)], ",", "."):
        begin = 2
    if begin >= ends:
        raise source.wrong(tokens[min(begin, len(tokens) - 1)], "nothing is selected")
    for one in split(source, tokens[begin:ends]):
        if is_sign(one.tokens[-1], "*") and (len(one.tokens) == 1 or is_sign(one.tokens[-2], ".")):
            raise one.wrong("SELECT * would follow the topic's schema", "name the columns")
        if len(one.tokens) > 2 and is_word(one.tokens[-2], "AS") and is_name(one.tokens[-1]):
            yield Item(expression=Span(source, one.tokens[:-2]), name=one.tokens[-1].text)
        else:
            yield Item(expression=one, name=one.name)


def _is_from(tokens: Sequence[Token], index: int) -> bool:
    """Whether FROM is the clause, and not that of `a IS DISTINCT FROM b`, or a column."""
    if not is_word(tokens[index], "FROM") or not index:
        return False
    return _ends_value(tokens, index - 1) or is_sign(tokens[index - 1], "*")


def _rows(source: SqlText, tokens: Sequence[Token], at: int) -> tuple[Token | Select, int]:
    """What stands after FROM, and the index of what follows it."""
    if at == len(tokens):
        raise source.wrong(tokens[-1], "nothing follows FROM", "write the topic's name")
    first = tokens[at]
    if is_sign(first, "("):
        ends = closing(tokens, at)
        if ends == at + 1:
            raise source.wrong(first, "there is nothing in these brackets", "write SELECT ... FROM ...")
        return select(source, tokens[at + 1 : ends]), _after_name(source, tokens, ends + 1)
    if not is_name(first):
        raise source.wrong(first, f"{first.text} is no topic's name", "write FROM and the topic's name")
    at += 1
    if at < len(tokens) and is_sign(tokens[at], ".", "("):
        named = Span(source, tokens[at - 1 : at + 2])
        raise named.wrong(f"{named.text} is no topic's name", "write FROM and the topic's name alone")
    return first, _after_name(source, tokens, at)


def _after_name(source: SqlText, tokens: Sequence[Token], at: int) -> int:
    if at < len(tokens) and is_sign(tokens[at], ","):
        raise source.wrong(tokens[at], f"FROM names two: {_JOINED[0]}", _JOINED[1])
    if at < len(tokens) and not _begins(tokens, at):
        why = f"{tokens[at].text} follows what is read, which has no second name"
        raise source.wrong(tokens[at], why, "leave it out")
    return at


def _begins(tokens: Sequence[Token], index: int) -> bool:
    """Whether a clause begins with this token."""
    return index > 0 and is_word(tokens[index], *_KEPT, *REFUSED) and _ends_value(tokens, index - 1)


def _ends_value(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    if index and is_word(tokens[index - 1], "AS"):  # a name, whatever word it is
        return True
    if token.token_type in (*STRINGS, TokenType.IDENTIFIER) or is_sign(token, ")", "]", "}"):
        return True
    return (token.text[:1].isalnum() or token.text[:1] == "_") and not is_word(token, *_OPEN_WORDS)


def _clauses(source: SqlText, tokens: Sequence[Token], at: int) -> Iterator[tuple[str, Sequence[Token]]]:
    """What follows FROM: by its word, the tokens of each clause."""
    starts = [at + index for index in outside(tokens[at:]) if _begins(tokens, at + index)]
    order = -1
    for begin, end in pairwise([*starts, len(tokens)]):
        word = tokens[begin].text.upper()
        if word in REFUSED:
            why, remedy = REFUSED[word]
            raise source.wrong(tokens[begin], f"{word} has no kind here: {why}", remedy)
        if _KEPT.index(word) <= order:
            why = f"{word} is not where it belongs"
            raise source.wrong(tokens[begin], why, f"the order is {', '.join(_KEPT)}")
        order = _KEPT.index(word)
        if begin + 1 == end:
            raise source.wrong(tokens[begin], f"nothing follows {word}")
        yield word, tokens[begin + 1 : end]


def _exploded(source: SqlText, tokens: Sequence[Token]) -> tuple[str, Span]:
    """Of `VIEW explode(array) AS name`, with or without another name between: the name and the array."""
    remedy = "write LATERAL VIEW explode(array) AS name"
    if not is_word(tokens[0], "VIEW") or len(tokens) < 6 or not is_word(tokens[-2], "AS"):
        raise source.wrong(tokens[0], "this LATERAL has no kind", remedy)
    ends = closing(tokens, 2) if is_sign(tokens[2], "(") else 0
    call = Span(source, tokens[1 : ends + 1]).call() if ends else None
    if call is None or len(call[1]) != 1 or len(tokens) - ends > 4 or call[0] != "explode":
        raise source.wrong(tokens[1], f"LATERAL VIEW {tokens[1].text} has no kind", remedy)
    return tokens[-1].text, call[1][0]
