"""Owns the text of a definition in SQL: its tokens, pieces of it as they are written, and where these stand.

Nothing is written from a tree: an expression is the slice from its first token to its last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.dialects.spark import Spark
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from twinlake.base import quote
from twinlake.base.errors import DefinitionError
from twinlake.base.files import shown_path
from twinlake.kinds.sql_form import header

STRINGS = (TokenType.STRING, TokenType.RAW_STRING)
_CLOSED = re.compile(
    r"""\br'[^']*'|\br"[^"]*"|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|`[^`]*`|--[^\n]*|/\*.*?\*/""",
    re.IGNORECASE | re.DOTALL,
)
_OPEN = re.compile(r"""['"`]|/\*""")
_NAME, _WORD = re.compile(r"[^\W\d]\w*"), re.compile(r"\w+")
_OPENING = {"(": ")", "[": "]", "{": "}"}


@dataclass(frozen=True, kw_only=True)
class SqlText:
    """The text of a file that defines one table."""

    text: str
    table: str
    file: str

    def tokens(self) -> tuple[Token, ...]:
        """All of it but comments; DefinitionError for a quote, comment or bracket that is left open."""
        try:
            tokens = tuple(Spark().tokenize(self.text))
        except SqlglotError:
            rest = _CLOSED.sub(lambda found: " " * len(found[0]), self.text)
            found = _OPEN.search(rest)
            raise self.wrong(found.start() if found else 0, "a quote or a comment is not closed") from None
        open_ = list[Token]()
        for one in tokens:
            if is_sign(one, *_OPENING):
                open_.append(one)
            elif is_sign(one, *_OPENING.values()) and (not open_ or _OPENING[open_.pop().text] != one.text):
                raise self.wrong(one, f"nothing opens this `{one.text}`")
        if open_:
            raise self.wrong(open_[-1], f"this `{open_[-1].text}` is not closed")
        return tokens

    def wrong(self, at: int | Token, why: str, remedy: str = "") -> DefinitionError:
        """An error at an offset of the text, or at a token."""
        line, column = place(self.text, at if isinstance(at, int) else at.start)
        return DefinitionError(self.table, shown_path(self.file), line, why, remedy, column)


@dataclass(frozen=True)
class Span:
    """Tokens that follow each other, at least one."""

    source: SqlText
    tokens: Sequence[Token]

    @property
    def start(self) -> int:
        return self.tokens[0].start

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.tokens[-1].end + 1]

    def wrong(self, why: str, remedy: str = "") -> DefinitionError:
        """An error where it begins."""
        return self.source.wrong(self.start, why, remedy)

    @property
    def name(self) -> str | None:
        """The name that it is, and nothing else."""
        return self.tokens[0].text if len(self.tokens) == 1 and is_name(self.tokens[0]) else None

    @property
    def last_name(self) -> str | None:
        """The same of a path of names, like `t.a`."""
        names, dots = self.tokens[::2], self.tokens[1::2]
        is_path = all(map(is_name, names)) and all(is_sign(one, ".") for one in dots)
        return names[-1].text if is_path and len(names) == len(dots) + 1 else None

    def call(self) -> tuple[str, tuple[Span, ...]] | None:
        """The function, in small letters, and its arguments, of what is one call."""
        if len(self.tokens) < 3 or not (is_name(self.tokens[0]) and is_sign(self.tokens[1], "(")):
            return None
        if closing(self.tokens, 1) != len(self.tokens) - 1:
            return None
        inner = self.tokens[2:-1]
        return self.tokens[0].text.lower(), tuple(split(self.source, inner)) if inner else ()

    def same_as(self, other: Span) -> bool:
        """Whether both are written with the same tokens."""
        return [(one.token_type, one.text) for one in self.tokens] == [
            (one.token_type, one.text) for one in other.tokens
        ]


def place(text: str, at: int) -> tuple[int, int]:
    """Line and column of an offset, both counted from 1."""
    return text.count("\n", 0, at) + 1, at - (text.rfind("\n", 0, at) + 1) + 1


def place_of(text: str, wanted: str, word: str = "") -> tuple[int, int] | None:
    """Where in a file's text this piece of its definition is written, or a word of it; None: nowhere.

    It is looked for in the statement first, then among the values on top, then within quotes.
    """
    at = next(_where(text, wanted), None)
    if at is None:
        return None
    found = re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text[at : at + len(wanted)]) if word else None
    return place(text, at + (found.start() if found else 0))


def _where(text: str, wanted: str) -> Iterator[int]:
    try:
        tokens = Spark().tokenize(text)
    except SqlglotError:  # it was another text when the definition was read
        return
    ends = {one.end + 1 for one in tokens}
    begun = (one.start for one in tokens if text.startswith(wanted, one.start))
    yield from (start for start in begun if start + len(wanted) in ends)
    top = header.read(text)
    yield from (one.value_at for one in top.said if one.value == wanted)
    for said in top.said:
        words = (found for found in _WORD.finditer(said.value) if found[0] == wanted)
        yield from (said.value_at + found.start() for found in words)
    yield from (one.start for one in tokens if one.token_type in STRINGS and one.text == wanted)


def is_word(token: Token, *words: str) -> bool:
    """Whether it is one of these words, and no quoted name or text that reads so."""
    return token.text.upper() in words and token.token_type not in (*STRINGS, TokenType.IDENTIFIER)


def is_sign(token: Token, *signs: str) -> bool:
    return token.text in signs and token.token_type not in (*STRINGS, TokenType.IDENTIFIER)


def is_name(token: Token) -> bool:
    """Whether it may be a name: a quoted one, or any word."""
    if token.token_type in STRINGS:
        return False
    return token.token_type == TokenType.IDENTIFIER or _NAME.fullmatch(token.text) is not None


def closing(tokens: Sequence[Token], opening: int) -> int:
    """The index of the bracket that closes the one at this index; there is one."""
    depth = 0
    for index in range(opening, len(tokens)):
        depth += is_sign(tokens[index], *_OPENING) - is_sign(tokens[index], *_OPENING.values())
        if depth == 0:
            return index
    raise AssertionError("brackets are counted before")


def outside(tokens: Sequence[Token]) -> Iterator[int]:
    """The indexes of the tokens that are in no brackets."""
    index = 0
    while index < len(tokens):
        yield index
        index = closing(tokens, index) + 1 if is_sign(tokens[index], *_OPENING) else index + 1


def split(source: SqlText, tokens: Sequence[Token]) -> Iterator[Span]:
    """The parts between commas that are in no brackets; DefinitionError where there is nothing in one."""
    begin = 0
    commas = [index for index in outside(tokens) if is_sign(tokens[index], ",")]
    for end in (*commas, len(tokens)):
        if begin == end:
            at = tokens[min(end, len(tokens) - 1)]
            raise source.wrong(at, "there is nothing before or after a comma" if commas else "it is empty")
        yield Span(source, tokens[begin:end])
        begin = end + 1


def named(name: str) -> str:
    """A name as it is written: in backticks where it is a word of SQL's own."""
    (token,) = Spark().tokenize(name)
    return name if token.token_type == TokenType.VAR else quote.name(name)
