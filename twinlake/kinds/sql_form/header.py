"""Owns the lines on top of a definition in SQL: what the table is, in prose, and `-- key: value`.

A value goes on in the lines below that begin with `--` and three spaces. The first line that is neither a
comment nor empty ends the top; lines between /* and */ say nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

_KEY = re.compile(r"--[ \t]?([a-z_][a-z0-9_]*(?:\.[a-z0-9_]+)?):(?:[ \t]+(.*)|\s*)")
_NEARLY = re.compile(r"--\s*(\w[\w.]*)\s*:.*")
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
    """`about` is the prose; `nearly` what reads like a key in it, with capitals or other white space."""

    about: str
    said: tuple[Said, ...]
    nearly: tuple[Said, ...]


def read(text: str) -> Header:
    """The top of a text; a key that is given twice is there twice."""
    prose, said, nearly = list[str](), list[Said](), list[Said]()
    at, goes_on, is_within = 0, False, False
    for line in text.split("\n"):
        bare = line.rstrip()
        found: re.Match[str] | None = None
        if is_within or bare.startswith("/*"):
            _, end, rest = bare.partition("*/")
            if end and rest.strip():
                break
            is_within = not end
        elif found := _KEY.fullmatch(line):
            places = (at + found.start(1), at + max(found.start(2), found.end(1)))
            said.append(Said(key=found[1], value=found[2] or "", key_at=places[0], value_at=places[1]))
        elif goes_on and line.startswith(_MORE):
            said[-1] = replace(said[-1], value=f"{said[-1].value}\n{line.removeprefix(_MORE)}")
        elif bare.startswith("--"):
            prose.append(bare.removeprefix("--").removeprefix(" "))
            if like := _NEARLY.fullmatch(bare):
                key_at = at + like.start(1)
                nearly.append(Said(key=like[1].lower(), value="", key_at=key_at, value_at=key_at))
        elif bare:
            break
        goes_on = bool(found) or (goes_on and line.startswith(_MORE))
        at += len(line) + 1
    values = (replace(one, value=one.value.rstrip()) for one in said)
    return Header(about="\n".join(prose).strip(), said=tuple(values), nearly=tuple(nearly))


def text(about: str, said: Mapping[str, str], keys: Collection[str] = ()) -> str:
    """The top that is read so; `keys` are all that any kind has."""
    prose = (_prose(line, keys) for line in about.splitlines())
    return "".join(f"{line}\n" for line in (*prose, *_lines(said)))


def _prose(line: str, keys: Collection[str]) -> str:
    """Within backticks what reads like a key is none."""
    like = _NEARLY.fullmatch(written := f"-- {line}".rstrip())
    if like and (_KEY.fullmatch(written) or like[1].lower() in keys):
        return written.replace(like[1], f"`{like[1]}`", 1)
    return written


def _lines(said: Mapping[str, str]) -> Iterable[str]:
    for key, value in said.items():
        first, *more = value.split("\n")
        yield f"-- {key}: {first}" if first else f"-- {key}:"
        yield from (f"{_MORE}{line}" for line in more)
