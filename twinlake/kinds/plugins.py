"""Plugins: kinds and measures that installed packages bring, by entry points of theirs.

A package's `pyproject.toml` says, for a kind of table and a measure:

    [project.entry-points."twinlake.kinds"]
    ages = "their_package.ages:Ages"

    [project.entry-points."twinlake.measures"]
    log_sum = "their_package.log_sum:LogSum"

The name of an entry point is the `kind` of its class, which stands in stored definitions for ever. The lake
server needs the same packages as those who write definitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any, TypeVar

from twinlake.base.errors import UsageError

T = TypeVar("T")
GROUPS = ("twinlake.kinds", "twinlake.measures")
_installed = cache(entry_points)  # a look at every package: 70 ms


def joined(group: str, listed: Iterable[type[T]]) -> dict[str, type[T]]:
    """By name the listed classes, and those of the group's entry points.

    UsageError, with package and name, for one that cannot be loaded, is called otherwise, or has the name of
    another: which of two would compute a table must not hang on the order of packages.
    """
    found: dict[str, Any] = {one.kind: one for one in listed}  # type: ignore[attr-defined]
    for point in _installed().select(group=group):
        place = f"the entry point {point.name} ({group}) of {point.dist.name if point.dist else point.value}"
        try:
            loaded = point.load()
        except Exception as error:  # whatever the module of others does
            raise UsageError(
                f"{place} cannot be loaded",
                f"{type(error).__name__}: {error}",
                "repair or remove the package",
            ) from error
        if getattr(loaded, "kind", None) != point.name:
            why = f"{point.value} has the kind {getattr(loaded, 'kind', None)!r}"
            raise UsageError(f"{place} has another name than its class", why, "give both one name")
        if point.name in found:
            why = f"{point.name} is {found[point.name].__module__}.{found[point.name].__qualname__} already"
            raise UsageError(f"{place} has a name that is taken", why, "rename it, or remove the package")
        found[point.name] = loaded
    return found


def unknown(what: str, name: Any, known: Iterable[str]) -> UsageError:
    """The error of a kind or measure that nobody brings."""
    return UsageError(
        f"unknown {what} kind {name!r}",
        f"it is none of {', '.join(known)}, and no package that is installed here brings it",
        "install the package that brings it (docs/plugins.md) and start again, or correct the name",
    )


@cache
def versions() -> tuple[str, ...]:
    """The packages that bring kinds or measures, each with its version."""
    points = (point for group in GROUPS for point in _installed().select(group=group))
    return tuple(sorted({f"{point.dist.name} {point.dist.version}" for point in points if point.dist}))
