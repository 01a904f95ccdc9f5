"""Owns the regular expressions that both engines match alike: a listed part of Java's grammar, for RE2.

Listed: characters, escaped signs, `.`, classes of characters, ranges, \\d, \\w, \\s and some \\p{..}, groups,
alternatives, greedy repetition of what cannot match nothing, `^` at the start and `$` at the end. Nothing
else is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from twinlake.witness.rules.letters import CATEGORIES, regular_class

_SIGNS = set("\\^$.|?*+()[]{}")
_BLANKS = r"\t\n\x0b\f\r "
"""Java's \\s; DuckDB's is without the vertical tab."""
_NO_DOT = r"\n\r\x{85}\x{2028}\x{2029}"
_SHORT = {"d": "0-9", "w": "0-9A-Z_a-z", "s": _BLANKS}
_WRITTEN = {"n": r"\n", "t": r"\t", "r": r"\r"}
_CATEGORY = re.compile(r"\\(?P<sign>[pP])\{(?P<name>\w+)\}")
_REPEATED = re.compile(r"[*+?]|\{\d{1,3}(,\d{0,3})?\}")


@dataclass(frozen=True, kw_only=True)
class Regular:
    """A listed expression. A text with a character of `doubtful`, the inside of a class, may be matched
    otherwise by Spark; empty: none may."""

    sql: str
    doubtful: str
    can_be_empty: bool
    groups: int


def listed(pattern: str) -> Regular | None:
    """The pattern for DuckDB; None where it is not of a listed form."""
    reader = _Reader(pattern)
    try:
        sql, can_be_empty = reader.alternatives()
    except _Unlisted:
        return None
    if reader.left:
        return None
    doubtful = "".join(regular_class(CATEGORIES[name]) for name in sorted(reader.categories))
    if reader.is_ended:
        doubtful += _NO_DOT  # Java's end of a text is before its last line break, too
    return Regular(sql=sql, doubtful=doubtful, can_be_empty=can_be_empty, groups=reader.groups)


class _Unlisted(Exception):
    pass


class _Reader:
    """A pattern, read from the left."""

    def __init__(self, pattern: str) -> None:
        self.left = pattern
        self._length = len(pattern)
        self.categories: set[str] = set()
        self.groups = 0
        self.is_ended = False

    def alternatives(self) -> tuple[str, bool]:
        parts = [self._sequence()]
        while self.left.startswith("|"):
            self._take(1)
            parts.append(self._sequence())
        return "|".join(sql for sql, _ in parts), any(empty for _, empty in parts)

    def _sequence(self) -> tuple[str, bool]:
        made, can_be_empty = "", True
        while self.left and self.left[0] not in "|)":
            sql, empty = self._repeated()
            made += sql
            can_be_empty = can_be_empty and empty
        return made, can_be_empty

    def _repeated(self) -> tuple[str, bool]:
        if self.left[0] == "^":
            if len(self.left) != self._length:
                raise _Unlisted
            self._take(1)
            return "^", True
        if self.left == "$":
            self._take(1)
            self.is_ended = True
            return "$", True
        sql, empty = self._atom()
        found = _REPEATED.match(self.left)
        if not found:
            return sql, empty
        sign = self._take(found.end())
        if empty or self.left[:1] in ("+", "?", "*", "{"):
            raise _Unlisted  # possessive and reluctant forms, and what may repeat nothing
        least = sign.strip("{}").partition(",")[0] if sign.startswith("{") else ""
        return sql + sign, sign in ("*", "?") or least == "0"

    def _atom(self) -> tuple[str, bool]:
        first = self.left[0]
        if first == "(":
            return self._group()
        if first == "[":
            return self._class(), False
        if first == ".":
            self._take(1)
            return f"[^{_NO_DOT}]", False
        if first == "\\":
            inside = self._escaped()
            return f"[{inside}]", False
        if first in _SIGNS:
            raise _Unlisted
        return _quoted(self._take(1)), False

    def _group(self) -> tuple[str, bool]:
        if self.left.startswith("(?:"):
            opened = self._take(3)
        elif self.left.startswith("(?"):
            raise _Unlisted
        else:
            opened = self._take(1)
            self.groups += 1
        sql, empty = self.alternatives()
        if self._take(1) != ")":
            raise _Unlisted
        return f"{opened}{sql})", empty

    def _class(self) -> str:
        self._take(1)
        opened = "["
        if self.left.startswith("^"):
            opened += self._take(1)
        inside = ""
        while not self.left.startswith("]"):
            if not self.left or self.left[0] in "[&^":
                raise _Unlisted  # classes in classes, and what Java reads as their intersection
            if self.left[0] == "\\":
                inside += self._escaped()
                if self.left.startswith("-") and not self.left.startswith("-]"):
                    raise _Unlisted
                continue
            inside += self._range()
        self._take(1)
        if not inside:
            raise _Unlisted
        return f"{opened}{inside}]"

    def _range(self) -> str:
        first = self._take(1)
        if not (self.left.startswith("-") and len(self.left) > 1 and self.left[1] != "]"):
            return _quoted(first)
        self._take(1)
        last = self._take(1)
        if last in "\\[&^-" or first == "-" or last < first:
            raise _Unlisted
        return f"{_quoted(first)}-{_quoted(last)}"

    def _escaped(self) -> str:
        """The inside of a class: what an escape stands for."""
        if found := _CATEGORY.match(self.left):
            if found["name"] not in CATEGORIES:
                raise _Unlisted
            self.categories.add(found["name"])
            return self._take(found.end())
        self._take(1)
        one = self._take(1)
        if one in _SHORT:
            return _SHORT[one]
        if one in _WRITTEN:
            return _WRITTEN[one]
        if one.isascii() and not one.isalnum() and one != " ":
            return _quoted(one)
        raise _Unlisted

    def _take(self, count: int) -> str:
        if len(self.left) < count:
            raise _Unlisted
        taken, self.left = self.left[:count], self.left[count:]
        return taken


def _quoted(character: str) -> str:
    """One character, outside of a class or inside, for RE2."""
    return character if character.isalnum() and character.isascii() else rf"\x{{{ord(character):x}}}"
