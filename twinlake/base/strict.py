"""Strict: the base of what comes in from outside, so that nothing is taken for what it is not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, model_validator

LARGEST = 2**63 - 1


class Strict(BaseModel):
    """An unknown field is refused by name, `true`, `1.0` and `"1"` where a whole number is meant, too."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class Plain(Strict):
    """Holds only what everybody can store and pass on, however deep inside."""

    @model_validator(mode="before")
    @classmethod
    def _plain(cls, given: Any) -> Any:
        for why in _faults(given):
            raise ValueError(why)
        return given


def _faults(given: Any) -> Iterator[str]:
    if isinstance(given, dict):
        for key, value in given.items():
            yield from _faults(key)
            yield from _faults(value)
    elif isinstance(given, (list, tuple)):
        for value in given:
            yield from _faults(value)
    elif isinstance(given, str) and "\0" in given:
        yield f"a text holds a NUL character: {given[:100]!r}"
    elif isinstance(given, int) and not -LARGEST - 1 <= given <= LARGEST:
        yield "a whole number is beyond 64 bits"
    elif isinstance(given, float) and not math.isfinite(given):
        yield f"{given} is not a number"
