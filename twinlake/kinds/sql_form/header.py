"""Owns the lines on top of a definition in SQL: what the table is, in prose, and `-- key: value`.

A value goes on in the lines below that begin with `--` and three spaces. The first line that is neither a
comment nor empty ends the top; `--` and three spaces after anything but a value is prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

_KEY = re.compile(r"--[ \t]?([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?)[ \t]*:(?:[ \t]+(.*)|\s*)")
_MORE = "--   "


@dataclass(frozen=True, kw_only=True)
class Said:
    """A key with its value, and at which offsets of the text both begin."""

    key: str
    value: str
    key_at: int
    value_at: int


@dataclass(frozen=True, kw_only=True)
class Header:
    """`about` is the prose."""

    about: str
    said: tuple[Said, ...]


def read(text: str) -> Header:
    """The top of a text; a key that is given twice is there twice."""
    prose, said = list[str](), list[Said]()
    at, goes_on = 0, False
    for line in text.split("\n"):
        bare = line.rstrip()
        if found := _KEY.fullmatch(line):
            places = (at + found.start(1), at + max(found.start(2), found.end(1)))
            said.append(Said(key=found[1], value=found[2] or "", key_at=places[0], value_at=places[1]))
        elif goes_on and line.startswith(_MORE):
            said[-1] = replace(said[-1], value=f"{said[-1].value}\n{line.removeprefix(_MORE)}")
        elif bare.startswith("--"):
            prose.append(bare.removeprefix("--").removeprefix(" "))
        elif bare:
            break
        goes_on = bool(found) or (goes_on and line.startswith(_MORE))
        at += len(line) + 1
    values = (replace(one, value=one.value.rstrip()) for one in said)
    return Header(about="\n".join(prose).strip(), said=tuple(values))


def text(about: str, said: Mapping[str, str]) -> str:
    """The top that is read so."""
    return "".join(f"{line}\n" for line in (*map(_prose, about.splitlines()), *_lines(said)))


def _prose(line: str) -> str:
    """With one more space what reads like a key is none."""
    return f"--  {line}" if _KEY.fullmatch(f"-- {line}") else f"-- {line}".rstrip()


def _lines(said: Mapping[str, str]) -> Iterable[str]:
    for key, value in said.items():
        first, *more = value.split("\n")
        yield f"-- {key}: {first}" if first else f"-- {key}:"
        yield from (f"{_MORE}{line}" for line in more)
