"""Owns what is no SQL for sure, said without Spark: a quote or bracket that is left open, two signs with
nothing between them, a sign at an end, a statement that begins with no word of its own.

Another parser's grammar would say more, and be wrong where Spark's differs: `FROM`, `COMMIT` and most other
words may be names of columns there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

_BEGINS = {"select", "with", "from", "values", "table", "map", "reduce", "("}
_SIGNS = {"+", "-", "*", "/", "%", "=", "==", "<=>", "<>", "!=", "<", ">", "<=", ">=", "||", "&", "^"}
_LEADING = {"+", "-", "*"}
"""What may stand before a value: also `*`, of all columns."""
_BEFORE_NO_SIGN = _SIGNS - {"*"}
_CLOSING = {")": "(", "]": "["}


def why_no_expression(sql: str) -> str | None:
    """What keeps a text from being an expression; None where it may be one."""
    return next(_wrong(sql), None)


def why_no_query(sql: str) -> str | None:
    """What keeps a text from being a SELECT, or another statement that reads; None where it may be one."""
    if why := why_no_expression(sql):
        return why
    first = next((one.text for one in _tokens(sql)), "")
    return None if first.lower() in _BEGINS else f"it is not SQL: it begins with `{first}`"


def _wrong(sql: str) -> Iterator[str]:
    try:
        tokens = _tokens(sql)
    except SqlglotError:
        yield "it is not SQL: a quote or a comment is not closed"
        return
    open_ = list[str]()
    for one in tokens:
        if _is_sign(one, *_CLOSING.values()):
            open_.append(one.text)
        elif _is_sign(one, *_CLOSING):
            if not open_ or open_.pop() != _CLOSING[one.text]:
                yield f"it is not SQL: nothing opens the `{one.text}` at `{_until(sql, one)}`"
                return
    if open_:
        yield f"it is not SQL: a `{open_[-1]}` is not closed"
    for left, right in pairwise(tokens):
        # of these Spark may read both as one sign, like >>>
        is_one = left.end + 1 == right.start and left.text[-1] in "<>=!|&-:"
        if not is_one and _is_sign(left, *_BEFORE_NO_SIGN) and _is_sign(right, *(_SIGNS - {"+", "-"})):
            yield f"it is not SQL: `{right.text}` follows `{left.text}` at `{_until(sql, right)}`"
    if tokens and _is_sign(tokens[-1], ",", *_BEFORE_NO_SIGN):
        yield f"it is not SQL: nothing follows the last `{tokens[-1].text}`"
    if tokens and _is_sign(tokens[0], ",", *(_SIGNS - _LEADING)):
        yield f"it is not SQL: nothing comes before the first `{tokens[0].text}`"


def _tokens(sql: str) -> list[Token]:
    return list(Spark().tokenize(sql))


def _is_sign(token: Token, *signs: str) -> bool:
    """Whether it is one of these, and no text or quoted name that reads so."""
    return token.text in signs and token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER)


def _until(sql: str, token: Token) -> str:
    """The text of its line up to the token."""
    return re.split(r"[\r\n]", sql[: token.end + 1])[-1][-40:].strip()
