"""What a key of `twinlake.toml` may hold and what it is for: pydantic validates a section by its keys.

Pydantic itself is imported when a file is read, not before: most commands read none.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, get_type_hints
from urllib.parse import urlsplit

from twinlake.base.files import one_line, read_secret

Parse = Callable[[Any], Any]
"""Takes what TOML has, gives what the field holds; ValueError says what it must be."""
PREFIX = "TWINLAKE_"
OPEN_TO_OTHERS = stat.S_IROTH | stat.S_IWOTH | stat.S_IWGRP
_FOLDER: ContextVar[Path] = ContextVar("the folder of the file that is read", default=Path())


@dataclass(frozen=True)
class Formed:
    """A Parse that says, as JSON Schema, what an editor can see of it."""

    parse: Parse
    form: Mapping[str, Any]

    def __call__(self, value: Any) -> Any:
        return self.parse(value)


def formed(**form: Any) -> Callable[[Parse], Formed]:
    """Makes a Formed of a function."""
    return lambda parse: Formed(parse, form)


@dataclass(frozen=True)
class Key:
    """One key: what it must be, what it is for, a TOML value of it, and its default as people read it."""

    parse: Parse
    doc: str
    example: str
    shown: str = ""
    is_shared: bool = False
    """Whether a section inside takes it from the one around, and cannot give it."""
    is_secret: bool = False
    """Only a variable may give it; the key `<name>_file` names a file that holds it."""

    @property
    def is_text(self) -> bool:
        """Whether a variable holds it as it is; numbers and tables are written there as in the file."""
        return self.example.startswith('"')

    @property
    def form(self) -> Mapping[str, Any]:
        """As JSON Schema, what an editor can see of what it must be."""
        return self.parse.form if isinstance(self.parse, Formed) else {"type": "string"}

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        from pydantic_core.core_schema import no_info_plain_validator_function

        return no_info_plain_validator_function(self.parse)


SECRET = Key(lambda value: one_line(value, "it"), "the secret itself", '"..."', is_secret=True)


@dataclass(frozen=True)
class Section:
    """A table of keys: the fields of a dataclass."""

    kind: type
    doc: str
    is_inner: bool = False

    @cached_property
    def keys(self) -> Mapping[str, Key | Section]:
        """What may stand in it, by name; secrets are among it."""
        return {
            name: one
            for name, hint in get_type_hints(self.kind, include_extras=True).items()
            for one in getattr(hint, "__metadata__", ())
            if isinstance(one, Section) or (isinstance(one, Key) and not (self.is_inner and one.is_shared))
        }

    def every_key(self, within: str) -> Iterator[tuple[str, Key]]:
        """Each key by its whole name, like `kafka.producer.username`; `within` is that of the section."""
        for name, one in self.keys.items():
            if isinstance(one, Section):
                yield from one.every_key(f"{within}.{name}")
            else:
                yield f"{within}.{name}", one


def variable_of(name: str) -> str:
    """The variable that goes before a key of the file."""
    return PREFIX + name.upper().replace(".", "_")


@contextmanager
def relative_to(folder: Path) -> Iterator[None]:
    """Paths begin there meanwhile."""
    before = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(before)


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError('it must be text, like "..."')
    return value.strip()


def whole(least: int, most: int) -> Parse:
    @formed(type="integer", minimum=least, maximum=most)
    def number(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise ValueError(f"it must be a whole number from {least} to {most}")
        return value

    return number


def matching(pattern: str, must: str) -> Parse:
    @formed(type="string", pattern=f"^({pattern})$")
    def matched(value: Any) -> str:
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"it must be {must}")
        return value

    return matched


def choice(*known: str) -> Parse:
    one_of = matching("|".join(map(re.escape, known)), f"one of {', '.join(known)}")
    return Formed(one_of, {"enum": [*known]})


def web_address(instead: str) -> Parse:
    """One address, without user and password: they would be in every error and log that names it.

    Of several, separated by commas, the registry's client tries each, with the password, https:// or not.
    """
    shape = r"https?://[^/?#\s,]+(/[^?#\s,]*)?"

    @formed(type="string", pattern=f"^({shape})$")
    def address(value: Any) -> str:
        found = matching(shape, "an address like https://host:8081")(value)
        try:
            _ = urlsplit(found).port
        except ValueError as error:
            raise ValueError(f"it is not an address: {error}") from error
        if "@" in found.split("//", 1)[1].split("/", 1)[0]:
            raise ValueError(f"it must hold no user and no password; {instead}")
        return str(found).rstrip("/")

    return address


def file(value: Any) -> Path:
    """A file that is there and can be read."""
    try:
        found = _FOLDER.get() / Path(text(value)).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value}: there is no such user, or no home of theirs") from error
    try:
        is_there = found.exists()
    except OSError as error:
        raise ValueError(f"{found} cannot be looked at: {error.strerror}") from error
    if not is_there:
        raise ValueError(f"there is no file {found}")
    if not found.is_file():
        raise ValueError(f"{found} is not a file")
    if not os.access(found, os.R_OK):
        raise ValueError(f"this user may not read {found}")
    return found


def private_file(value: Any) -> Path:
    """The same of one that others cannot read."""
    found = file(value)
    if found.stat().st_mode & OPEN_TO_OTHERS:
        raise ValueError(f"everybody on this machine can read {found}, or more than its owner can change it: "
                         f"`chmod 600 {found}`")  # fmt: skip
    return found


def secret_in_file(value: Any) -> Path:
    """The same of one that holds a password, and nothing else."""
    found = private_file(value)
    read_secret(found)
    return found


MEMORY = matching(r"[1-9]\d*[mg]", 'a size like "4g" or "1500m"')
SERVERS = matching(
    r"(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+(\s*,\s*(\[[0-9a-fA-F:]+\]|[\w.-]+):\d+)*",
    'like "host:9092" or "one:9092,two:9092"',
)


def ca_file(doc: str, is_shared: bool = False) -> Key:
    """A file of certificates to trust."""
    return Key(file, doc, '"/etc/twinlake/ca.pem"', "those that this system trusts", is_shared)
