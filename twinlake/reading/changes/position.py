"""Position: how far a reader has followed a table, as text that the reader keeps and shows again.

`latest_order.7.orders=120.31.5f0c9a3e77d1.e3b0c44298fc.1d4e9a02`: the table, the release, the batches of its
logs, the versions of the Delta tables that it was read at, what tells this lake's past from another's, and a
reader's rights from others, and a sum over all of it.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from twinlake.base.errors import UsageError
from twinlake.lake.catalog.version import Pin, pin_json

LONGEST = 4_000
BEGINNING, NOW = "beginning", "now"
EVERYTHING = ""
"""What `Judge.like` says for whoever sees all of a table."""
_IDENTITY, _RIGHTS, _SUM = 12, 12, 8
_FORM = re.compile(
    r"(?P<table>\w{1,200})\.(?P<release>\d{1,12})\.(?P<batches>[^\s=,]{1,250}=\d{1,18}(,[^\s=,]{1,250}=\d{1,18})*)"
    rf"\.(?P<commits>(\d{{1,18}}(-\d{{1,18}})*)?)\.(?P<identity>[0-9a-f]{{{_IDENTITY}}})"
    rf"(\.(?P<rights>[0-9a-f]{{{_RIGHTS}}}))?"
)


@dataclass(frozen=True, kw_only=True)
class Position:
    """`commits` has the Delta version of each stored table that it is made of, in the order of `pinned`."""

    table: str
    release: int
    batches: dict[str, int]
    commits: tuple[int, ...]
    identity: str
    rights: str = ""
    """Of a reader's; empty for what the table has, whoever reads it, and in the text of a position that was
    made before there were any."""

    @property
    def text(self) -> str:
        batches = ",".join(f"{topic}={batch}" for topic, batch in sorted(self.batches.items()))
        said = f"{self.table}.{self.release}.{batches}.{'-'.join(map(str, self.commits))}.{self.identity}"
        said += f".{self.rights}" if self.rights else ""
        return f"{said}.{_sum(said)}"

    def of(self, like: str) -> Position:
        """Of a reader who sees what all see for whom `Judge.like` says this."""
        return replace(self, rights=hashlib.sha256(like.encode()).hexdigest()[:_RIGHTS])

    def is_of(self, like: str) -> bool:
        """Whether what such a reader sees now is what this one saw."""
        return self == self.of(like)


def position_of(table: str, release: int, pin: Pin) -> Position:
    """Of a reader who has all that the table showed at this pin."""
    return Position(
        table=table, release=release, batches=dict(pin.position), commits=tuple(pinned(pin)),
        identity=identity(pin),
    )  # fmt: skip


def pinned(pin: Pin) -> Iterator[int]:
    """The Delta versions of a pin: its own, then those of what it reads, by name."""
    if pin.delta_version is not None:
        yield pin.delta_version
    for _, read in sorted(pin.reads.items()):
        yield from pinned(read)


def identity(pin: Pin) -> str:
    """What the pin of another lake, or of this one before it was restored, has not: its clocks are in it."""
    said: dict[str, Any] = pin_json(pin)
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()[:_IDENTITY]


def parse(table: str, text: str) -> Position:
    """UsageError for what is no position of this table."""
    said, _, found = text.rpartition(".")
    form = _FORM.fullmatch(said)
    if form is None or _sum(said) != found:
        raise _refused(table, text, "it is cut off, or was changed on its way")
    if form["table"] != table:
        raise _refused(table, text, f"it is one of {form['table']}")
    pairs = (one.rpartition("=") for one in form["batches"].split(","))
    commits = tuple(map(int, filter(None, form["commits"].split("-"))))
    return Position(
        table=table, release=int(form["release"]), identity=form["identity"], commits=commits,
        batches={topic: int(batch) for topic, _, batch in pairs}, rights=form["rights"] or "",
    )  # fmt: skip


def _refused(table: str, text: str, why: str) -> UsageError:
    shown = text if len(text) <= 80 else f"{text[:80]}…"
    return UsageError(
        f"{shown!r} is not a position of {table}", why,
        "give the `id` of the last event that you had, as it came; or begin with from=beginning, or from=now",
    )  # fmt: skip


def _sum(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()[:_SUM]
