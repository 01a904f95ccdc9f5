"""Compares what the oracle computed with what a reader is shown, key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

EXACT_BELOW = 4_096
SKETCH_BOUND = 0.05  # three standard errors of a theta sketch with 4,096 entries
KEPT = 20


@dataclass(kw_only=True)
class Comparison:
    """One table: how many keys each side has, how many differ, and the first of them with both sides."""

    expected: int
    shown: int
    differing: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def equal(self) -> bool:
        return self.differing == 0

    def to_json(self) -> dict[str, Any]:
        return {
            "equal": self.equal,
            "expected": self.expected,
            "shown": self.shown,
            "differing": self.differing,
            "examples": self.examples,
        }


def compare(
    expected: Mapping[Any, Any],
    shown: Mapping[Any, Any],
    same: Callable[[Any, Any], bool] = lambda one, other: one == other,
) -> Comparison:
    """Every key of either side must be on both, with the same values."""
    result = Comparison(expected=len(expected), shown=len(shown))
    for key in [*expected, *(key for key in shown if key not in expected)]:
        ours, theirs = expected.get(key), shown.get(key)
        if ours is None or theirs is None or not same(ours, theirs):
            result.differing += 1
            if len(result.examples) < KEPT:
                result.examples.append({"key": _text(key), "expected": _text(ours), "shown": _text(theirs)})
    return result


def same_sales(expected: tuple[Any, ...], shown: tuple[Any, ...]) -> bool:
    """All but the last two exactly; customers exactly as long as the sketch is exact, else within its bound;
    final as it must be, or either way where that is open (None), but never NULL.
    """
    *others, customers, final = expected
    *shown_others, estimate, shown_final = shown
    if others != shown_others or not isinstance(shown_final, bool) or final not in (None, shown_final):
        return False
    if customers < EXACT_BELOW:
        return customers == estimate
    return abs(estimate - customers) <= SKETCH_BOUND * customers


def _text(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_text(part) for part in value]
    return value if isinstance(value, int | str | None) else str(value)
