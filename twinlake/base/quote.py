"""Owns the quoting of names and text for Spark SQL; nothing else may put either into a query."""

from __future__ import annotations

import re

_NAME_ALONE = re.compile(r"\s*(?:\w+|`(?:[^`]|``)*`)\s*(?:--[^\n]*|/\*.*\*/\s*)?", re.DOTALL)


def name(text: str) -> str:
    """An identifier, whatever characters it has."""
    return "`" + text.replace("`", "``") + "`"


def names(texts: tuple[str, ...] | list[str]) -> str:
    """Identifiers, separated by commas."""
    return ", ".join(name(text) for text in texts)


def string(text: str) -> str:
    """A string literal (needs Spark's default of escaped string literals)."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
    return "'" + escaped + "'"


def expression(sql: str) -> str:
    """A parsed-before expression put into a longer text: a comment at its end cannot swallow the rest."""
    return f"(\n{sql}\n)"


def condition(sql: str) -> str:
    """The same after WHERE, where a name alone takes one more pair: to Spark, which does not reserve WHERE,
    `FROM a WHERE (b)` gives other names to `a` and its column."""
    return expression(expression(sql) if _NAME_ALONE.fullmatch(sql) else sql)
