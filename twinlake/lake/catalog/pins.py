"""Pins as plain data: whoever keeps one by the name of its version finds the state again that it was of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from twinlake.base.errors import NotFoundError
from twinlake.lake.catalog.version import Pin, Version

Find = Callable[[str, str], Version]
"""The living version of a table by name; NotFoundError."""


def pin_json(pin: Pin) -> dict[str, Any]:
    """A pin as plain data; its versions by name."""
    return {
        **vars(pin), "version": pin.version.name,
        "reads": {table: pin_json(read) for table, read in pin.reads.items()},
    }  # fmt: skip


def pin_of(table: str, data: Mapping[str, Any], find: Find) -> Pin | None:
    """The pin that `pin_json` gave; None where one of its versions is no longer living."""
    try:
        return _pin(table, data, find)
    except NotFoundError:
        return None


def _pin(table: str, data: Mapping[str, Any], find: Find) -> Pin:
    reads = {name: _pin(name, read, find) for name, read in data["reads"].items()}
    return Pin(**{**data, "version": find(table, data["version"]), "reads": reads})
