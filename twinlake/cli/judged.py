"""Owns what `twinlake diff --sample` has found out of the tables that it was asked for, whoever did it."""

from __future__ import annotations

import fnmatch
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from twinlake.base.errors import NotFoundError, TwinlakeError, near
from twinlake.cli.options import names_in

_SIGNS = "*?["
DIFFERENT, UNKNOWN = 1, 3
"""Exit codes: the tables show something else; what they show is not known of all."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Every table that was asked for is in one of these, or a pattern met it and it means what it meant."""

    against: str
    """What the definitions are compared with, for a person."""
    compared: Sequence[Mapping[str, Any]] = ()
    """Each as `SampledChange` is in JSON."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By table, why what it shows could not be found out."""
    new: Sequence[str] = ()
    """Tables that the other side has not."""
    removed: Sequence[str] = ()

    @property
    def equal(self) -> bool:
        return all(one["equal"] for one in self.compared)

    @property
    def exit_code(self) -> int:
        return DIFFERENT if not self.equal else UNKNOWN if self.refused else 0

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal, "against": self.against, "compared": [*self.compared],
            "refused": dict(self.refused), "new": [*self.new], "removed": [*self.removed],
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """The tables that `--sample` names. Of those that a pattern meets, the ones whose definitions differ."""

    names: tuple[str, ...]
    patterns: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Wanted:
        listed = dict.fromkeys(names_in("--sample", text))
        patterns = tuple(one for one in listed if any(sign in one for sign in _SIGNS))
        return cls(names=tuple(one for one in listed if one not in patterns), patterns=patterns)

    def refuse_unknown(self, known: Collection[str]) -> None:
        """NotFoundError for a name that no definition has, and for a pattern that meets none of them."""
        for name in self.names:
            if name not in known:
                what = f"there is no table {name!r}{near(name, known)}"
                raise NotFoundError(what, "no definition has this name", "name another")
        for pattern in self.patterns:
            if known and not fnmatch.filter(known, pattern):
                what = f"no table has a name like {pattern!r}{near(pattern, known)}"
                raise NotFoundError(what, "the pattern meets no definition", "write another, or '*' for all")

    def met(self, known: Collection[str]) -> list[str]:
        """Those of these tables that are meant, in the order in which they are known."""
        return [
            one for one in known
            if one in self.names or any(fnmatch.fnmatchcase(one, pattern) for pattern in self.patterns)
        ]  # fmt: skip

    def shown(self, compared: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Without those that only a pattern meets, and that mean what they meant."""
        return [one for one in compared if one["changed"] or one["table"] in self.names]

    def refuse_wrong(self, known: Collection[str], wrong: Sequence[TwinlakeError]) -> None:
        """The first error in files of definitions, where it may hide one of those that are meant."""
        if wrong and (self.patterns or not {*self.names} <= {*known}):
            raise wrong[0]
