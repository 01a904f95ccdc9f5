"""Owns the reading of Spark SQL: sqlglot's parser, kept from giving a function another meaning."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from twinlake.witness.refused import Refused

_KEPT_PARSERS = ("CAST", "TRY_CAST")
_ESCAPES = set("\\'\"nrt")
"""What may follow a backslash in a text: sqlglot and Spark read these alike."""
_DEEPEST = 200
_SAME = {
    "integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "numeric": "decimal",
    "dec": "decimal", "real": "float", "regexp": "rlike", "days": "day", "hours": "hour", "minutes": "minute",
    "seconds": "second", "weeks": "week", "months": "month", "years": "year",
}  # fmt: skip
_LEFT_OUT = {
    "is", "not", "distinct", "from", "asc", "nulls", "first", "last", "outer", "inner", "all", "decimal", "1",
    "0",
}  # fmt: skip
"""Words that sqlglot writes in another way, or not where they mean nothing."""


class _Written(Spark):
    """Spark's grammar, with each call of a function left as it is written: `Anonymous`."""

    class Parser(SparkParser):
        FUNCTIONS: ClassVar = {}
        FUNCTION_PARSERS: ClassVar = {name: SparkParser.FUNCTION_PARSERS[name] for name in _KEPT_PARSERS}
        NO_PAREN_FUNCTIONS: ClassVar = {}


def parse(text: str) -> exp.Expression:
    """The tree of an expression or a SELECT; Refused where it is not read as Spark reads it."""
    try:
        _refuse_tokens(text, Spark().tokenize(text))
        found = _Written().parse(text)
    except Refused:
        raise
    except Exception as error:  # of what it cannot read it says so in many ways, AssertionError among them
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise Refused(text, f"it is not understood: {why[:200]}") from None
    if len(found) != 1 or not isinstance(tree := found[0], exp.Expression):
        raise Refused(text, "it is not one expression")
    if any(node.depth > _DEEPEST for node in tree.find_all(exp.Expression)):
        raise Refused(text, "it is nested too deeply")
    _refuse_lost(text, tree)
    return tree


def spark_text(node: exp.Expression) -> str:
    """The node as Spark SQL, near to what the user wrote."""
    try:
        return node.sql(dialect=_Written, normalize_functions=False)
    except SqlglotError:
        return node.key


def _refuse_lost(text: str, tree: exp.Expression) -> None:
    """sqlglot passes over words that it expects elsewhere, such as a column that is called `as`."""
    lost = _words(text) - _words(spark_text(tree))
    if lost:
        raise Refused(text, f"{min(lost)} is not understood where it stands")


def _words(text: str) -> Counter[str]:
    words: Counter[str] = Counter()
    before: Token | None = None
    for token in Spark().tokenize(text):
        is_suffix = before is not None and _is_suffixed(text, before)  # the L of 5L
        if token.text[:1].isalnum() and not is_suffix:
            word = token.text.lower()
            words[_SAME.get(word, word)] += word not in _LEFT_OUT
        before = token
    return words


def _is_suffixed(text: str, token: Token) -> bool:
    """Whether sqlglot has put this :: between a number and its type."""
    return token.token_type == TokenType.DCOLON and text[token.start : token.end + 1] != "::"


def _refuse_tokens(text: str, tokens: list[Token]) -> None:
    for before, token in zip([None, *tokens], tokens, strict=False):
        source = text[token.start : token.end + 1]
        if token.token_type == TokenType.SEMICOLON:
            raise Refused(text, "what ends at a ; is a statement, and stands in no other")
        if token.token_type == TokenType.STRING:
            _refuse_escapes(source)
            if before is not None and before.token_type == TokenType.STRING and before.end + 1 == token.start:
                raise Refused(
                    text, "a quote that is written twice is not listed: write a backslash before it"
                )
        # sqlglot reads 5L as 5::BIGINT, and Spark gives the one other digits than the other
        if source == "::" and before is not None and before.token_type == TokenType.NUMBER:
            raise Refused(text, "a number that is cast by :: is not listed")


def _refuse_escapes(source: str) -> None:
    """sqlglot leaves octal and unicode escapes as they are; Spark reads them."""
    at = source.find("\\")
    while at >= 0:
        if source[at + 1 : at + 2] not in _ESCAPES:
            raise Refused(source, "this escape in a text is not listed")
        at = source.find("\\", at + 2)
