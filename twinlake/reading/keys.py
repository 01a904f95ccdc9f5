"""Keys: the values that tell rows of a table from others, as text: `region=north`, or `region` for NULL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from twinlake.base.errors import UsageError

Key = Mapping[str, str | None]
"""By column its value, None for NULL."""


def key_of(given: Iterable[str]) -> dict[str, str | None]:
    """The key columns of rows, as they are given: `name=value`, or the name alone for NULL."""
    parts = [one.partition("=") for one in given]
    if len({name for name, _, _ in parts}) < len(parts):
        raise UsageError("a key column is given twice", ", ".join(given), "give each of them once")
    return {name: value if parted else None for name, parted, value in parts}


def text_of(key: Key) -> str:
    return ", ".join(f"{name} is NULL" if value is None else f"{name}={value}" for name, value in key.items())
