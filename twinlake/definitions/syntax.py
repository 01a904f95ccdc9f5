"""Owns what is no SQL for sure, said without Spark: a text that sqlglot's grammar of Spark does not read.

Of the 1,112 examples in Spark's own documentation of its functions it reads all but those of the forms below;
`tests/definitions/test_as_spark.py` holds that.
"""

from __future__ import annotations

import re

import sqlglot
from sqlglot.errors import ParseError, SqlglotError

_ONLY_SPARKS = re.compile(
    r">>>|![<>]|\bX\s+'|\bstruct\s*\(|(?<!:):(?!:)|\b(void|values|desc)\b|^\s*\w+\s*$", re.IGNORECASE
)
"""Where it may be Spark that is right."""
_SHOWN = 40
"""So many characters before the place are shown."""
_WORDS = (
    (re.compile(r"Required keyword: .*"), "something is missing"),
    (re.compile(r"Invalid expression / Unexpected token.*"), "nothing can be read"),
    (re.compile(r"Expect(?:ing|ed) (.+?)(?: after .+)?\. Line .*"), r"\1 is missing"),
)


def why_wrong(sql: str) -> str | None:
    """What keeps a text from being an expression or a SELECT; None where it may be one."""
    if _ONLY_SPARKS.search(sql):
        return None
    try:
        sqlglot.parse(sql, dialect="spark")
    except ParseError as error:
        found = error.errors[0] if error.errors else {}
        read = f"{found.get('start_context', '')}{found.get('highlight', '')}".splitlines() or [""]
        what = str(error).splitlines()[0]
        for pattern, words in _WORDS:
            what = pattern.sub(words, what)
        return f"it is not SQL: {what} at `{read[-1][-_SHOWN:].strip()}`"
    except SqlglotError:
        return "it is not SQL: a quote or a comment is not closed"
    except RecursionError:
        return None
    return None
